"""Spans for tests: OTLP as Python objects, its rules as checks, and its protobuf form by protoc."""
import os
import re
import shutil
import subprocess

from e2e import SOURCE, check

PROTO = os.path.join(SOURCE, "tests", "otlp.proto")


def attribute(key, value):
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": key, "value": {kind: str(value)}}


def values(entry):
    """Returns the attributes of a span or resource; integers as int."""
    def value(v):
        (kind, x), = v.items()
        return int(x) if kind == "intValue" else x
    return {a["key"]: value(a["value"]) for a in entry.get("attributes", [])}


def document(spans, host="Debian", pid=151, ns=1, **more):
    """Returns a document with spans (number, start in us, end in us, TID or 0) of one process. ns: added to the times, which
    have the precision of 1 us or less if it is 0."""
    resource = {"host.name": host, **({"process.pid": pid} if pid else {})}
    resource |= {key.replace("_", "."): value for key, value in more.items()}
    return {"resourceSpans": [{
        "resource": {"attributes": [attribute(k, v) for k, v in resource.items()]},
        "scopeSpans": [{"scope": {"name": "tests"}, "spans": [{
            "traceId": f"{n:032x}", "spanId": f"{n:016x}", "name": "step", "kind": 2, "startTimeUnixNano": str(start * 1000 + ns),
            "endTimeUnixNano": str(end * 1000 + ns), "attributes": [attribute("thread.id", tid)] if tid else []}
            for n, start, end, tid in spans]}]}]}


def all_spans(documents):
    """Returns (resource, scope, span) of each span."""
    return [(r.get("resource", {}), s.get("scope", {}), span) for d in documents for r in d["resourceSpans"]
            for s in r["scopeSpans"] for span in s["spans"]]


def check_document(d):
    """Checks the rules of OTLP as JSON: names of members, types of values, lengths of ids."""
    def check_members(o, allowed):
        check(set(o) <= set(allowed.split()), f"members: {sorted(o)}")

    def check_attributes(o):
        for a in o.get("attributes", []):
            check_members(a, "key value")
            (kind, v), = a["value"].items()
            right = {"stringValue": str, "intValue": str, "boolValue": bool, "doubleValue": (int, float)}[kind]
            check(a["key"] and isinstance(v, right) and (kind != "intValue" or re.fullmatch(r"-?\d+", v)), f"attribute {a}")
        keys = [a["key"] for a in o.get("attributes", [])]
        check(len(keys) == len(set(keys)), f"each attribute once: {keys}")

    check_members(d, "resourceSpans")
    for r in d["resourceSpans"]:
        check_members(r, "resource scopeSpans schemaUrl")
        check_attributes(r["resource"])
        for s in r["scopeSpans"]:
            check_members(s, "scope spans schemaUrl")
            for span in s["spans"]:
                check_members(span, "traceId spanId parentSpanId traceState name kind startTimeUnixNano endTimeUnixNano "
                              "attributes events links status flags")
                check(re.fullmatch("[0-9a-f]{32}", span["traceId"]) and re.fullmatch("[0-9a-f]{16}", span["spanId"]), "ids")
                check(re.fullmatch("[0-9a-f]{16}", span.get("parentSpanId", "0" * 16)), "parent")
                check(0 < int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) and span["kind"] in range(6), "span")
                check(isinstance(span["startTimeUnixNano"], str) and span["name"], "time as a text, and a name")
                check_attributes(span)


# ---- protobuf

def as_text(o, indent=""):
    """Returns a message in protobuf's text form."""
    snake = {k: re.sub("[A-Z]", lambda m: "_" + m[0].lower(), k) for k in o}
    out = []
    for key, value in o.items():
        for v in value if isinstance(value, list) else [value]:
            if isinstance(v, dict):
                out.append(f"{indent}{snake[key]} {{\n{as_text(v, indent + ' ')}{indent}}}")
            elif key in ("traceId", "spanId", "parentSpanId"):
                out.append(f'{indent}{snake[key]}: "' + "".join(f"\\x{b:02x}" for b in bytes.fromhex(v)) + '"')
            elif key in ("intValue", "startTimeUnixNano", "endTimeUnixNano", "timeUnixNano") or not isinstance(v, str):
                out.append(f"{indent}{snake[key]}: {str(v).lower()}")
            else:
                quoted = v.replace("\\", "\\\\").replace('"', '\\"')
                out.append(f'{indent}{snake[key]}: "{quoted}"')
    return "\n".join(out) + "\n"


def has_protoc():
    return shutil.which("protoc") is not None


def encode(d):
    """Returns the protobuf form of a document."""
    return subprocess.run(["protoc", f"--proto_path={os.path.dirname(PROTO)}", "--encode=Request", PROTO],
                          input=as_text(d).encode(), capture_output=True, check=True).stdout
