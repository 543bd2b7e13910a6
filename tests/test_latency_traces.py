"""`latency traces`: critical paths of random traces over two simulated VMs, against brute force; their parts add up."""
import json
import os
import random

from e2e import check, codes, run, scratch, simulate, table
from otlp import attribute

PARTS = ("service_ns", "stolen_ns", "throttled_ns", "wait_ns", "between_ns", "unknown_ns")
CLIENT, SERVER = ("Debian", 109), ("Ubuntu", 106)
UNTIL = 1795152652990000000


class World:
    def __init__(self, folder):
        self.history, self.path = f"{folder}/chain.steal", f"{folder}/spans.json"
        simulate(f"{folder}/chain", "chain", "--duration", "1s")
        run("index", f"{folder}/chain", "-o", self.history)
        clocks = json.loads(run("info", self.history, "--format", "json").stdout)["clocks"]
        self.clock = {c["guest"]: c for c in clocks}
        self.status = {t: [(int(r["start"]), int(r["end"]), r["value"]) for r in
                           table("intervals", self.history, f"/Virtual Machines/{t[0]}/Threads/{t[1]}/Status")]
                       for t in (CLIENT, SERVER)}
        self.runs = {t: [s for s, e, v in rows if v == "RUNNING" and e - s > 3000 and e < UNTIL]
                     for t, rows in self.status.items()}
        self.pid = {t: next(int(r["value"]) for r in table("intervals", self.history,
                    f"/Virtual Machines/{t[0]}/Threads/{t[1]}/PID") if r["value"]) for t in (CLIENT, SERVER)}

    def span(self, trace, number, parent, thread, start, end, kind=2, tid=True, host=None):
        """Returns a document with a span; start and end are times of the host at which its thread runs."""
        line = self.clock[thread[0]]
        start, end = (line["ref_guest_ns"] + (t - line["ref_host_ns"]) * 2**60 // (2**60 + line["drift"]) + 1000
                      for t in (start, end))
        o = {"traceId": f"{trace:032x}", "spanId": f"{number:016x}", "name": f"n{number}", "kind": kind,
             "startTimeUnixNano": str(start), "endTimeUnixNano": str(end),
             "attributes": [attribute("thread.id", thread[1])] if tid else []}
        if parent:
            o["parentSpanId"] = f"{parent:016x}"
        resource = [attribute("host.name", host or thread[0]), attribute("process.pid", self.pid[thread])]
        return {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [{"spans": [o]}]}]}

    def ask(self, documents, *args):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write("\n".join(json.dumps(d) for d in documents))
        return table("latency", "traces", self.history, "--spans", self.path, "--clock-error", "0", *args)

    def times(self):
        """Returns {id: (start, end)} on the host's clock, closed."""
        rows = table("latency", "requests", self.history, "--spans", self.path, "--clock-error", "0")
        return {r["request"].split()[1]: (int(r["start"]), int(r["end"])) for r in rows}


def spans_of(documents):
    return [d["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for d in documents]


def brute_path(spans, times):
    """Returns the steps (id or None, start, end) of one trace, in order of time."""
    by_id = {s["spanId"]: s for s in spans}

    def above(s):
        while (s := by_id.get(s.get("parentSpanId"))) and s["spanId"] not in times:
            pass
        return s and s["spanId"]

    children = {}
    for s in spans:
        if s["spanId"] in times:
            children.setdefault(above(s), []).append(s)

    def walk(span_id, start, end):
        steps, cursor, is_last = [], end, True
        for c in sorted(children.get(span_id, []), key=lambda s: times[s["spanId"]][::-1], reverse=True):
            c_start, c_end = times[c["spanId"]]
            if span_id and (c["kind"] == 5 or c_end > times[span_id][1]):
                continue
            first, last = max(c_start, start), min(c_end, cursor)
            if first > last or (not is_last and c_end > cursor):
                continue
            steps = walk(c["spanId"], first, last) + ([(span_id, last + 1, cursor)] if last < cursor else []) + steps
            cursor, is_last = first - 1, False
        return ([(span_id, start, cursor)] if start <= cursor else []) + steps

    first = children[None]
    if len(first) == 1:
        return walk(first[0]["spanId"], *times[first[0]["spanId"]])
    return walk(None, min(times[s["spanId"]][0] for s in first), max(times[s["spanId"]][1] for s in first))


def random_trace(world, rng, trace):
    """Returns documents of spans that are nested, parallel, overlapping, asynchronous, of another machine."""
    documents, intervals = [], []
    for i in range(rng.randrange(1, 9)):
        number = trace * 100 + i + 1
        parent = rng.choice(intervals)[0] if intervals and rng.random() < 0.9 else 0
        bounds = next((x[1:] for x in intervals if x[0] == parent), None)
        thread = rng.choice((CLIENT, SERVER))
        runs = world.runs[thread]
        inside = [t for t in runs if not bounds or rng.random() < 0.1 or bounds[0] < t < bounds[1]]
        if len(inside) < 2:
            continue
        start, end = sorted(rng.sample(inside, 2))
        documents.append(world.span(trace, number, parent, thread, start, end, kind=rng.choice((1, 2, 3, 5)),
                                    host="elsewhere" if parent and rng.random() < 0.1 else None))
        intervals.append((number, start, end))
    return documents


def check_sums(world, rows):
    total = sum(int(r["latency_ns"]) for r in rows)
    for by in ("trace", "machine", "span"):
        other = table("latency", "traces", world.history, "--spans", world.path, "--clock-error", "0", "--by", by)
        check(all(sum(int(r[p]) for p in PARTS) == int(r["latency_ns"]) > 0 for r in other), f"by {by}: the parts add up")
        check(sum(int(r["latency_ns"]) for r in other) == total, f"by {by}: {total} ns in all")


def check_random(world):
    rng = random.Random(1)
    documents = [d for trace in range(1, 41) for d in random_trace(world, rng, trace)]
    rows = world.ask(documents)
    times, spans = world.times(), spans_of(documents)
    ids = {s["traceId"] for s in spans if s["spanId"] in times}
    check(len(rows) == len(ids) > 30, f"{len(rows)} traces")
    check_sums(world, rows)
    steps = table("latency", "traces", world.history, "--spans", world.path, "--clock-error", "0", "--by", "span")
    for row in rows:
        own = [s for s in spans if s["traceId"] == row["trace"]]
        wanted = [(f"n{int(i, 16)}" if i else "", start, end - start + 1) for i, start, end in brute_path(own, times)]
        found = [(r["span"], int(r["start"]), int(r["latency_ns"])) for r in steps if r["trace"] == row["trace"]]
        check(found == wanted, f"trace {int(row['trace'], 16)}: {len(wanted)} steps of {len(own)} spans")
        check(int(row["latency_ns"]) == sum(x[2] for x in wanted), "its latency is the sum")
    check(sum(int(r["stolen_ns"]) for r in rows) > 0 and max(len(r["machine"]) for r in steps) > 0, "time was stolen")
    check({"spans-asynchronous", "spans-unplaced"} <= set(codes("latency", "traces", world.history, "--spans", world.path)),
          "notes on asynchronous spans, and on those of another machine")
    one = rows[0]["trace"]
    only = table("latency", "traces", world.history, "--spans", world.path, "--clock-error", "0", "--trace", one)
    check(only == [r for r in steps if r["trace"] == one], "--trace: the steps of that trace")
    text = run("latency", "traces", world.history, "--spans", world.path, "--trace", one[-16:]).stdout
    check(one[-16:] in text and one not in text and "\n1 trace, " in text, "the text shows the end of the id, which --trace accepts")


def check_parts(world):
    """Parts of single spans, against the states of their threads and the bounds of `latency requests`."""
    runs = world.runs[CLIENT]
    pairs = [(runs[i], runs[i + 3]) for i in range(0, len(runs) - 4, 4)]
    documents = [world.span(i + 1, i + 1, 0, CLIENT, s, e) for i, (s, e) in enumerate(pairs)]
    rows = {r["trace"]: r for r in world.ask(documents)}
    times = world.times()
    requests = table("latency", "requests", world.history, "--spans", world.path, "--clock-error", "0")
    low, culprit = ({r["request"].split()[1]: r[key] for r in requests} for key in ("provider_low_ns", "culprit"))
    for span in spans_of(documents):
        row, (start, end) = rows[span["traceId"]], times[span["spanId"]]
        sums = {}
        for s, e, v in world.status[CLIENT]:
            sums[v] = sums.get(v, 0) + max(0, min(e, end) - max(s, start) + 1)
        lost = int(row["stolen_ns"]) + int(row["throttled_ns"])
        check(int(row["service_ns"]) + lost == sums.get("RUNNING", 0) + sums.get("VIRT_PREEMPTED", 0) and
              int(row["wait_ns"]) == sums.get("PREEMPTED", 0) and int(row["between_ns"]) == sums.get("BLOCKED", 0) and
              row["of_process_ns"] == "0", "the parts are those of the thread's states")
        check(lost == int(low[span["spanId"]]), f"stolen is the lower bound of `latency requests`: {lost}")
        check(row["culprit"] == (culprit[span["spanId"]] if lost else ""), f"and so is its culprit: {row['culprit']}")
    check(len(rows) > 5 and any(r["culprit"] for r in rows.values()), f"{len(rows)} spans, of which some lost time")
    whole = world.ask([world.span(i + 1, i + 1, 0, CLIENT, s, e, tid=False) for i, (s, e) in enumerate(pairs)])
    check(all(r["of_process_ns"] == r["latency_ns"] for r in whole), "without a thread: by the process")
    same = sum(all(rows[r["trace"]][p] == r[p] for p in PARTS) for r in whole)
    check(same == len(whole), "of one thread: the same parts")


def check_hostile(world):
    s, e = world.runs[CLIENT][0], world.runs[CLIENT][-1]
    circle = [world.span(1, 1, 2, CLIENT, s, e), world.span(1, 2, 3, CLIENT, s, e), world.span(1, 3, 1, CLIENT, s, e)]
    check(len(world.ask(circle)) == 1, "a circle of parents")
    check(len(world.ask([world.span(1, 1, 1, CLIENT, s, e)])) == 1, "a span that is its own parent")
    deep = [world.span(1, i, i - 1, CLIENT, s, e) for i in range(1, 3001)]
    rows = world.ask(deep, "--by", "span")
    check(len(rows) == 1 and rows[0]["span"] == "n3000", "3000 spans in each other")
    inside = [t for t in world.runs[SERVER] if t > s][5:7]
    twice = world.ask([world.span(1, 1, 0, CLIENT, s, e, kind=3), world.span(1, 1, 0, SERVER, *inside)],
                      "--by", "span")
    check([r["machine"] for r in twice] == ["Debian", "Ubuntu", "Debian"], "client and server with one id, as in Zipkin")
    for args, status in (((), 1), (("--spans", world.path, "--trace", "ff"), 2), (("--spans", os.devnull), 2)):
        run("latency", "traces", world.history, *args, status=status)


with scratch() as tmp:
    w = World(tmp)
    check_random(w)
    check_parts(w)
    check_hostile(w)
