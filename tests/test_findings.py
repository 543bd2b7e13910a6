"""The rules of doc/findings.md: which victim, which culprit, which moment, and when nothing can be said."""
import json
import os
import re
import time

from e2e import DATA, SHARED, check, joined, run, scratch, simulate, table

LIMIT = 0.05


def findings(history, *target):
    return json.loads(run("explain", history, *target, "--format", "json").stdout)["findings"]


def make(folder, name, *arguments):
    traces = os.path.join(folder, name)
    simulate(traces, *arguments)
    return traces


def index(traces, *options):
    history = traces.rstrip("/") + ".steal"
    run("index", *options, traces, "-o", history)
    return history


def check_base(history):
    """The share is ns / (ran + lost) of the target, and above the limit."""
    rows = {r["target"]: r for r in table("summary", history, "--top", "0")}
    for f in findings(history):
        if f["healthy"] or f["base"] != "wanted" or f["target"] not in rows:
            continue
        row = rows[f["target"]]
        wanted = int(row["ran_ns"]) + int(row["lost_ns"])
        check(abs(f["share"] - f["ns"] / wanted) < 1e-6, f"base: {f['text']}")
        check("% of the time it wanted to run" in f["text"], "the sentence names the base")


def check_doors(history):
    """summary, explain and ticket have the same sentence."""
    first = findings(history)[0]
    verdict = json.loads(run("summary", history, "--format", "json").stdout)["verdict"]
    check(verdict == first, f"doors: the verdict is the first finding: {first['text']}")
    check(f"verdict: {first['text']}." in joined(run("summary", history).stdout), "doors: summary")
    page = history + ".html"
    run("ticket", history, "-o", page)
    with open(page, encoding="utf-8") as f:
        text = joined(re.sub("<[^>]*>", " ", f.read()))
    check(first["text"][:50] in text, "doors: ticket")
    at = time.strftime("%H:%M:%S", time.gmtime(first["moment"]["start_ns"] // 10**9))
    check(f"The moment: {at}" in text, "doors: the ticket shows the moment")
    with open(history + ".keys", "w", encoding="ascii") as f:
        f.write(f"key O\nkey 1\n:screen {history}.txt\nkey q\n")
    run("view", history, "--script", history + ".keys", "--size", "120x40", "--glyphs", "ascii")
    with open(history + ".txt", encoding="utf-8") as f:
        screen = f.read()
    culprit = re.split("[/ ]", first["moment"]["culprit"])[-1]
    check(culprit in screen.rstrip("\n").split("\n")[-2], f"doors: key 1 goes to the moment of {culprit}")


def check_moment(history):
    """The moment lies in a gap of its target, and the gaps there name its culprit."""
    for f in findings(history):
        moment = f["moment"]
        if f["healthy"]:
            check(moment is None, "moment: none of a healthy recording")
            continue
        window = ["--from", str(moment["start_ns"]), "--to", str(moment["end_ns"])]
        gaps = table("gaps", history, moment["target"], *window)
        name = re.split("[/ ]", moment["culprit"])[-1]
        check(any(name in " ".join(g.values()) for g in gaps), f"moment: {f['text']}")


def check_target(history):
    """A named target is the victim, whatever it lost."""
    for name in ("Debian", "Debian/CPU0", "host"):
        target = findings(history, name)[0]["target"]
        check(target is not None and target.split("/")[0] == name.split("/", maxsplit=1)[0], f"target: {name}")


def check_order(found):
    """Within equal ranks the larger loss comes first, except of similar losses."""
    ranks = {"culprit": 0, "limit": 0, "chain": 0, "overcommitted": 0, "unknown": 0, "vm-exits": 1, "own-threads": 2, "wakeup-latency": 2}
    order = [ranks.get(f["kind"], 3) for f in found]
    check(order == sorted(order), f"ranks: {[f['kind'] for f in found]}")


def check_recorder(history):
    """No thread that records is a victim."""
    for f in findings(history):
        name = (f["target"] or "").split(" ", maxsplit=1)[-1]
        check(not re.match(r"(lttng|trace-cmd|perf|xentrace|stealscope)\b", name), f"recorder: {f['text']}")


def check_nothing(folder):
    """A trace without scheduler events is not healthy."""
    traces = make(folder, "silent", "fibonacci", "--duration", "500ms")
    silent = os.path.join(folder, "silent.steal")
    run("index", "--host", os.path.join(traces, "host"), "--layout", "perf", "-o", silent)  # it describes none of LTTng's events
    (only,) = findings(silent)
    check(only["kind"] == "nothing" and not only["healthy"] and only["moment"] is None, f"evidence: {only['text']}")
    check("healthy" not in run("explain", silent).stdout, "evidence: explain")


with scratch() as directory:
    recorded = os.path.join(directory, "data.steal")
    run("index", os.path.join(DATA, "fibonacci"), "-o", recorded)
    for check_rule in (check_base, check_doors, check_moment, check_target, check_recorder):
        check_rule(recorded)
    for world in ("fibonacci", "planted --plant quota", "planted --plant vm", "critical_task", "chain",
                  "tenant --plant quota", "groups"):
        made = index(make(directory, world.replace(" ", "_"), *world.split(), "--duration", "2s"))
        check_base(made)
        check_moment(made)
        check_order(findings(made))
    host = index(os.path.join(directory, "fibonacci", "host"), "--host")
    check(findings(host)[0]["kind"] != "nothing", "a host alone has an answer")
    alone = os.path.join(directory, "alone.steal")
    run("index", os.path.join(directory, "fibonacci", "guest-Debian"), "-o", alone)
    check(findings(alone)[0]["kind"] == "unknown" and not findings(alone)[0]["healthy"], "source: a guest alone is not healthy")
    check_nothing(directory)
    name = os.path.join(SHARED, "xen_dom0")
    if os.path.isdir(name):
        dom0 = os.path.join(directory, "xen_dom0.steal")
        run("index", name, "-o", dom0)
        check(findings(dom0)[0]["target"] == "Debian", "tiers: guests come before dom0")
        check(findings(dom0, "Domain-0")[0]["target"] == "Domain-0", "tiers: dom0 is the victim when asked for")
