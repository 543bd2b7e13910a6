"""`export --to otlp:`: requests of a recording and spans of a file come back with the same bounds; files, HTTP, protobuf."""
import http.server
import json
import os
import shutil
import struct
import threading

import otlp
from e2e import DATA, check, run, scratch, simulate, skip, table

MS = 10**6
FIRST = 1795152649000000000  # on the host's clock of the recording fibonacci


def load(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def save(path, text):
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    return path


def rows(history, *args):
    return [{k: v for k, v in r.items() if k != "request"} for r in table("latency", "requests", history, *args)]


def check_spans(documents, requests, gap_min=MS):
    """Checks the documents against the requests in the order of their spans; returns the number of gaps."""
    for d in documents:
        otlp.check_document(d)
    spans = otlp.all_spans(documents)
    parents = {s["spanId"]: s for _, scope, s in spans if scope.get("name") != "stealscope"}
    check(len(parents) == len(requests), f"{len(parents)} spans of {len(requests)} requests")
    for span, row in zip(parents.values(), requests):
        known = otlp.values(span)
        check(known["stealscope.stolen_ns.low"] == int(row["provider_low_ns"]) and
              known["stealscope.stolen_ns.high"] == int(row["provider_high_ns"]) and
              known.get("stealscope.culprit", "") == row["culprit"], f"{span['name']}: bounds and culprit")
        check(0 <= known["stealscope.throttled_ns"] <= known["stealscope.stolen_ns.high"], "throttled is a part of stolen")
    gaps = [s for _, scope, s in spans if scope.get("name") == "stealscope"]
    check(len({s["spanId"] for _, _, s in spans}) == len(spans), "the ids differ")
    for g in gaps:
        p = parents[g["parentSpanId"]]
        start, end = int(g["startTimeUnixNano"]), int(g["endTimeUnixNano"])
        check(p["traceId"] == g["traceId"] and int(p["startTimeUnixNano"]) <= start < end <= int(p["endTimeUnixNano"]) and
              end - start >= gap_min * 0.999, "a gap of 1 ms within its parent")
    return gaps


def check_requests(tmp):
    """Requests of a recording, written and read again: the same bounds, to the ns."""
    history, path = f"{tmp}/sim.steal", f"{tmp}/sim.json"
    simulate(f"{tmp}/sim", "requests", "--burst", "1")
    run("index", f"{tmp}/sim", "-o", history)
    answer = json.loads(run("export", history, "--to", f"otlp:{path}", "--format", "json").stdout)
    first = rows(history)
    gaps = check_spans(load(path), first)
    counts = {r["table"]: r["rows"] for r in answer["rows"]}
    check(counts == {"span": len(first), "gap": len(gaps)} and gaps, f"the answer counts {counts}")
    again = rows(history, "--spans", path, "--clock-error", "0")
    check(again == first and any(int(r["provider_low_ns"]) for r in first), f"all {len(first)} requests are the same again")
    wide = rows(history, "--spans", path)
    check(all(int(w["provider_low_ns"]) <= int(r["provider_low_ns"]) <= int(r["provider_high_ns"]) <= int(w["provider_high_ns"])
              for w, r in zip(wide, first)), "with the clock error, the bounds contain the exact ones")
    with open(path, "rb") as f:
        text = f.read()
    run("export", history, "--to", f"otlp:{path}")
    with open(path, "rb") as f:
        check(f.read() == text, "written again: the same bytes")
    check(len({s["traceId"] for _, _, s in otlp.all_spans(load(path))}) == len(first), "each request is a trace")
    if otlp.has_protoc():
        messages = [otlp.encode(d) for d in load(path)]
        proto = save(f"{tmp}/sim.bin", b"".join(struct.pack(">I", len(m)) + m for m in messages))
        check(rows(history, "--spans", proto, "--clock-error", "0") == first, "protoc accepts it, and the requests are the same")


def fibonacci(tmp):
    history = f"{tmp}/fibonacci.steal"
    shutil.copytree(os.path.join(DATA, "fibonacci"), f"{tmp}/fibonacci")
    run("index", f"{tmp}/fibonacci", "-o", history)
    line = json.loads(run("info", history, "--format", "json").stdout)["clocks"][0]

    def to_guest(t):
        return (line["ref_guest_ns"] + (t - line["ref_host_ns"]) * 2**60 // (2**60 + line["drift"])) // 1000
    return history, [(n, to_guest(FIRST + n * 100 * MS), to_guest(FIRST + n * 100 * MS + 50 * MS), 151) for n in range(1, 6)]


def check_files(tmp, history, spans):
    """Spans of a file keep all they had."""
    d = otlp.document(spans, service_name="fibonacci")
    span = d["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["events"] = [{"timeUnixNano": span["startTimeUnixNano"], "name": "retry", "attributes": [otlp.attribute("n", 3)]}]
    span["attributes"] += [otlp.attribute("http.route", "/a/\u00e9\"x"), otlp.attribute("stealscope.culprit", "old")]
    span |= {"status": {"code": 2, "message": "no"}, "parentSpanId": "00000000000000aa",
             "links": [{"traceId": "1" * 32, "spanId": "2" * 16}]}
    d["resourceSpans"].append(otlp.document([(99, 1, 2, 5)], host="elsewhere")["resourceSpans"][0])
    path, out, again = f"{tmp}/in.json", f"{tmp}/out.json", f"{tmp}/again.json"
    save(path, json.dumps(d, indent=1))
    run("export", history, "--spans", path, "--clock-error", "0", "--to", f"otlp:{out}")
    written = load(out)
    elsewhere = written[0]["resourceSpans"].pop()
    check(elsewhere["scopeSpans"] == d["resourceSpans"][-1]["scopeSpans"], "a span of another machine is unchanged")
    check(check_spans(written, rows(history, "--spans", path, "--clock-error", "0")), "there are gaps")
    new = otlp.all_spans(written)[0][2]
    kept = otlp.values(new)
    check(all(new[k] == span[k] for k in span if k != "attributes") and kept["http.route"] == "/a/\u00e9\"x" and
          kept["stealscope.culprit"] == "host/216 burnP6", "events, links, status and attributes are kept")
    check(written[0]["resourceSpans"][0]["resource"] == d["resourceSpans"][0]["resource"], "and the resource")
    run("export", history, "--spans", out, "--clock-error", "0", "--to", f"otlp:{again}")
    check(load(again)[0]["resourceSpans"][0] == written[0]["resourceSpans"][0], "a second pass changes nothing")
    if otlp.has_protoc():
        check_protobuf(tmp, history, d, path)
    return path


def check_protobuf(tmp, history, d, path):
    """The three forms of protobuf files contain the same spans as JSON."""
    one = otlp.encode(d)
    two = [otlp.encode({"resourceSpans": [r]}) for r in d["resourceSpans"]]
    forms = {"one message": one, "4 bytes": b"".join(struct.pack(">I", len(m)) + m for m in two),
             "varint": b"".join(bytes([len(m) & 127 | 128, len(m) >> 7] if len(m) > 127 else [len(m)]) + m for m in two)}
    args = ("latency", "requests", history, "--clock-error", "0", "--format", "csv", "--spans")
    wanted = run(*args, path).stdout
    for name, message in forms.items():
        proto = save(f"{tmp}/{name}.bin", message)
        check(run(*args, proto).stdout == wanted, f"protobuf, {name}: the same requests")
        outs = [f"{tmp}/{kind}.json" for kind in ("json", "protobuf")]
        for source, out in zip((path, proto), outs):
            run("export", history, "--spans", source, "--to", f"otlp:{out}")
        a, b = (otlp.all_spans(load(out)) for out in outs)
        check(a == b, f"protobuf, {name}: written back like JSON")
        for cut in (1, len(message) // 2, len(message) - 1):
            p = run(*args, save(f"{tmp}/cut.bin", message[:cut]), status=2)
            check(p.stderr.count("\n") == 1, f"{cut} bytes: {p.stderr.strip()}")


def check_jaeger(tmp, history, spans):
    """A Jaeger file survives."""
    n, start, end, tid = spans[0]
    tags = [{"key": "thread.id", "type": "int64", "value": tid}, {"key": "error", "type": "bool", "value": True},
            {"key": "span.kind", "type": "string", "value": "client"}, {"key": "ratio", "type": "float64", "value": 0.5}]
    d = {"data": [{"traceID": "a", "processes": {"p": {"serviceName": "s", "tags": [
        {"key": "hostname", "type": "string", "value": "Debian"}, {"key": "pid", "type": "int64", "value": 151}]}},
        "spans": [{"traceID": f"{n:x}", "spanID": f"{n:x}", "operationName": "get", "startTime": start,
                   "duration": end - start, "tags": tags, "processID": "p", "references": [
                       {"refType": "CHILD_OF", "traceID": f"{n:x}", "spanID": "77"}],
                   "logs": [{"timestamp": start + 1, "fields": [{"key": "event", "type": "string", "value": "x"}]}]}]}]}
    path, out = save(f"{tmp}/jaeger.json", json.dumps(d)), f"{tmp}/jaeger.otlp"
    run("export", history, "--spans", path, "--to", f"otlp:{out}")
    check_spans(load(out), rows(history, "--spans", path))
    resource, _, span = otlp.all_spans(load(out))[0]
    known = otlp.values(span)
    check(span["kind"] == 3 and span["status"] == {"code": 2} and span["parentSpanId"] == f"{0x77:016x}" and
          known["thread.id"] == 151 and known["ratio"] == 0.5 and known["error"] is True, "span and tags")
    check(otlp.values(resource) == {"service.name": "s", "hostname": "Debian", "pid": 151}, "process")
    check(otlp.values(span["events"][0]) == {"event": "x"} and span["events"][0]["timeUnixNano"] == f"{start + 1}000", "log")
    check(rows(history, "--spans", out, "--clock-error", "1us") == rows(history, "--spans", path, "--clock-error", "0"),
          "the written file contains the same request")


class Collector(http.server.BaseHTTPRequestHandler):
    answer, seen = (200, b"{}"), []

    def do_POST(self):
        body = b""
        while (size := int(self.rfile.readline(), 16)) > 0:
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        self.seen.append((self.path, dict(self.headers), body))
        self.send_response(self.answer[0])
        self.send_header("Content-Length", str(len(self.answer[1])))
        self.end_headers()
        self.wfile.write(self.answer[1])

    def log_message(self, *_):
        pass


def check_http(history, path, wanted):
    """Messages reach a collector as they are in the file."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"otlp+http://127.0.0.1:{server.server_port}"
    args = ("export", history, "--spans", path, "--clock-error", "0", "--to")
    run(*args, host, env={"OTEL_EXPORTER_OTLP_HEADERS": "x-key=a=b,Tenant=1"})
    run(*args, host + "/other/path")
    (p1, headers, body), (p2, _, _) = Collector.seen
    check(p1 == "/v1/traces" and p2 == "/other/path" and headers["Content-Type"] == "application/json" and
          headers["x-key"] == "a=b" and headers["Tenant"] == "1", f"paths and headers: {p1} {p2} {headers}")
    check(body.decode() == wanted, "the message is that of the file")
    for answer, text in (((200, b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}'), "rejected 2 spans: too old"),
                         ((503, b"busy"), "busy"), ((400, b""), "400")):
        Collector.answer = answer
        p = run(*args, host, status=4)
        check(text in p.stderr and p.stderr.count("\n") == 1, f"{answer}: {p.stderr.strip()}")
    run(*args, host, status=1, env={"OTEL_EXPORTER_OTLP_HEADERS": "a"})
    check("secret" not in run(*args, host.replace("//", "//u:secret@"), status=1).stderr, "no user in the URL")
    server.shutdown()


with scratch() as folder:
    check_requests(folder)
    fib, steps = fibonacci(folder)
    file = check_files(folder, fib, steps)
    check_jaeger(folder, fib, steps)
    for bad in (("--to", f"csv:{folder}/csv", "--spans", file), ("--to", f"otlp:{folder}/x", "--only", "run"),
                ("--to", f"otlp:{folder}/x", "--clock-error", "1s")):
        run("export", fib, *bad, status=1)
    refused = run("export", fib, "--spans", file, "--to", f"otlp:{fib}", status=None)
    check(refused.returncode and "spans" in refused.stderr and os.path.getsize(fib) > 1000, "no other file is overwritten")
    run("export", fib, "--to", f"otlp:{folder}/x", status=2)
    check(not os.path.exists(f"{folder}/x"), "nothing is half written")
    if "(not in this build)" in next(x for x in run("export", "--targets").stdout.split("\n") if x.startswith("otlp+http:")):
        skip("built without libcurl")
    run("export", fib, "--spans", file, "--clock-error", "0", "--to", f"otlp:{folder}/http.json")
    with open(f"{folder}/http.json", encoding="utf-8") as whole:
        check_http(fib, file, whole.read().rstrip("\n"))
    if not otlp.has_protoc():
        skip("no protoc; all other checks passed")
