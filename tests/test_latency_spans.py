"""Spans as requests: `latency requests --spans` of a shipped recording, with spans of a known thread in all forms."""
import base64
import json
import os
import re
import shutil

from e2e import DATA, check, codes, run, scratch, table
from otlp import document

MS = 10**6
COUNT = 5


def guest_times(history):
    """Returns a function from the host's clock to the guest's, by the line that `info` prints."""
    line = json.loads(run("info", history, "--format", "json").stdout)["clocks"][0]
    slope = 2**60 + line["drift"]
    return lambda t: line["ref_guest_ns"] + (t - line["ref_host_ns"]) * 2**60 // slope


def jaeger(spans):
    return {"data": [{"spans": [{
        "traceID": f"{n:x}", "spanID": f"{n:x}", "operationName": "step", "startTime": start, "duration": end - start,
        "tags": [{"key": "thread.id", "type": "int64", "value": tid}], "processID": "p1"} for n, start, end, tid in spans],
        "processes": {"p1": {"serviceName": "fibonacci", "tags": [
            {"key": "hostname", "type": "string", "value": "debian.example.org"},
            {"key": "pid", "type": "int64", "value": 151}]}}}]}


def zipkin(spans):
    return [{"traceId": f"{n:x}", "id": f"{n:x}", "name": "step", "timestamp": start, "duration": end - start,
             "tags": {"host.name": "Debian", "process.pid": "151", "thread.id": str(tid)}} for n, start, end, tid in spans]


def bounds(rows):
    return [(int(r["provider_low_ns"]), int(r["provider_high_ns"]), int(r["latency_ns"])) for r in rows]


with scratch() as where:
    recording = os.path.join(where, "fibonacci")
    shutil.copytree(os.path.join(DATA, "fibonacci"), recording)
    history = os.path.join(where, "h.steal")
    run("index", recording, "-o", history)
    to_guest = guest_times(history)
    FIRST = 1795152649000000000
    spans = [(n, to_guest(FIRST + n * 100 * MS) // 1000, to_guest(FIRST + n * 100 * MS + 50 * MS) // 1000, 151)
             for n in range(1, COUNT + 1)]

    def ask(text, *args, status=0):
        path = os.path.join(where, "spans.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        more = ("latency", "requests", history, "--spans", path, *args)
        return table(*more) if status == 0 else run(*more, status=status)

    exact = ask(document(spans), "--clock-error", "0", "--features")
    check(len(exact) == COUNT and all(r["machine"] == "Debian" for r in exact), "a request for each span of a thread")
    for row in exact:
        start, end = int(row["start"]), int(row["end"])
        gaps = table("gaps", history, "Debian/CPU0", "--from", str(start), "--to", str(end))
        lost = sum(min(end, int(g["end"])) - max(start, int(g["start"])) + 1 for g in gaps)
        low, high = int(row["provider_low_ns"]), int(row["provider_high_ns"])
        check(0 < low <= high == lost and row["blocked"] == "0", f"span at {start}: {lost} ns, the gaps of its only vCPU")
        check(row["culprit"] == "host/216 burnP6", "its culprit is the other thread of the host")
    check(all(abs(latency - 50 * MS) < 3000 for _, _, latency in bounds(exact)), "the latencies are those of the spans")

    exact = ask(document(spans), "--clock-error", "0")
    wide = ask(document(spans), "--clock-error", "1ms")
    default = ask(document(spans))
    for outer, inner in ((default, exact), (wide, default)):
        check(all(a[0] <= b[0] <= b[1] <= a[1] <= a[2] for a, b in zip(bounds(outer), bounds(inner))),
              "a larger clock error only widens the bounds")
    lines = "\n".join(json.dumps(document([span])) for span in spans) + "\n"
    check(ask(lines, "--clock-error", "0") == exact, "a document for each line is the same")
    check(ask(json.dumps(document(spans), indent=2), "--clock-error", "0") == exact, "and an indented document")
    one_us = bounds(ask(document(spans, ns=0), "--clock-error", "0"))
    check(all(a[0] <= b[0] and b[1] <= a[1] for a, b in zip(one_us, bounds(exact))) and one_us != bounds(exact),
          "times in whole us widen the bounds")
    ms = [(n, start // 1000 * 1000, end, tid) for n, start, end, tid in spans]
    whole_ms, one_ms = (bounds(ask(document(ms, ns=k), "--clock-error", e)) for k, e in ((0, "0"), (1, "1ms")))
    check(all(abs(x - y) <= 4 for a, b in zip(whole_ms, one_ms) for x, y in zip(a, b)), "starts in whole ms: as an error of 1 ms")
    check(bounds(ask(jaeger(spans), "--clock-error", "0")) == one_us, "Jaeger: the same with its precision of 1 us")
    check(bounds(ask(zipkin(spans), "--clock-error", "0")) == one_us, "Zipkin: the same with its precision of 1 us")

    for text, why in ((document([s[:3] + (0,) for s in spans]), "no thread"),
                          (document([s[:3] + (15,) for s in spans]), "a thread of another process"),
                          (document(spans, pid=0), "no process"),
                          (document([s[:3] + (135,) for s in spans], pid=135), "a process that sleeps"),
                          (document(spans, container_id="1"), "a container's own numbering"),
                          (document(spans + [(9, spans[0][1] + 1, spans[-1][2], 151)]), "spans of one thread that overlap")):
        rows = ask(text, "--clock-error", "0")
        check(len(rows) >= COUNT and all(low == 0 < high for low, high, _ in bounds(rows)), f"{why}: at least 0")
        if why != "spans of one thread that overlap":
            check(all(a[1] >= b[1] for a, b in zip(bounds(rows), bounds(exact))), f"{why}: at most is no smaller")
    check("spans-interleaved" in codes("latency", "requests", history, "--spans", os.path.join(where, "spans.json")),
          "a note on overlapping spans")
    # ids in base64, as Tempo writes them
    encoded = document(spans)
    for span in encoded["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for key in ("traceId", "spanId"):
            span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    check(ask(encoded, "--clock-error", "0") == exact, "ids in base64 are those in digits")
    encoded["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"] = "AAAA*AAAAAE="
    check("base64" in ask(encoded, status=2).stderr, "another id is refused")

    # machines by an attribute
    unknown = document(spans, host="web-1", service_name="front")
    refused = ask(unknown, status=2).stderr
    check("web-1" in refused and "service.name=front" in refused and "Debian" in refused, f"names and machines: {refused}")
    check(ask(unknown, "--clock-error", "0", "--machine-of", "service.name=back=host,service.name=front=Debian") == exact,
          "--machine-of finds the machine")
    for wrong in ("service.name=front=Nobody", "service.name=Debian", "x"):
        ask(unknown, "--machine-of", wrong, status=1)
    outside = ask(document([(1, 1000, 2000, 151)]), status=2).stderr
    check(re.search(r"outside the recording: 1; its window: \d", outside), f"with the window: {outside}")

    ask(document([s[:3] + (135,) for s in spans], pid=135))
    check({"spans-of-machine", "spans-without-thread"} <= set(codes("latency", "requests", history, "--spans",
                                                                   os.path.join(where, "spans.json"))), "with notes")
    both = "\n".join(json.dumps(document(spans, host=f"debian.{domain}")) for domain in ("one", "two"))
    check("name no machine" in ask(both, status=2).stderr, "one machine with two domains")
    for host in ("web", "Debian2", "host.Debian"):
        check("name no machine" in ask(document(spans, host=host), status=2).stderr.replace("\n", " "), f"no machine {host}")
    check("name no machine" in ask(document(spans, service_instance_id="hypervisor"), status=2).stderr, "contradictory names")

    ask(document(spans))
    path = os.path.join(where, "spans.json")
    report = run("latency", "report", history, "--spans", path).stdout
    check(f"{COUNT} requests" in report, "report: of the spans")
    for limit, status in (("1ns", 3), ("1s", 0)):
        run("latency", "assert", history, f"p50.provider<{limit}", "--spans", path, status=status)
    run("latency", "assert", history, "p50.provider<1s", "--clock-error", "1ms", status=1)

    for bad in ("", "{", "5", '{"resourceSpans":[]}', "[" * 100, '{"data":5}', "[{}]", "\0",
                '[{"traceId":"x","id":"1","timestamp":1,"duration":1}]'):
        message = ask(bad, status=2).stderr
        check(message.count("\n") == 1 and ("line 1: " in message or "byte 0: " in message), f"refused: {bad[:20]!r}")
    check("too large" in ask("[" + "[]," * (2 << 20), status=2).stderr, "the number of values is limited")
    ask(document(spans), "--clock-error", "x", status=1)
    run("latency", "requests", history, "--clock-error", "1ms", status=1)
    run("latency", "requests", history, "--spans", where, status=2)
