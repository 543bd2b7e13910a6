"""The rules of doc/findings.md: which victim, which culprit, which moment, and when nothing can be said.

Clauses and their checks, with figures of the simulator's truth where the answer could be wrong in the same way as the table:
  base     check_base             limit, floor  check_victims, check_floor    tiers      check_tiers, check_recorder
  groups   check_groups           ranks         check_order, check_groups     order      check_groups
  events   test_verdict (pause, migrate), check_events                        names      check_names
  spread   test_verdict (overcommit)            chains  test_verdict (disk, pair, soroban_contended)
  moment   check_moment, check_doors            evidence  check_nothing       source     the guest alone, below
  target   check_target                         unknown   check_unknown"""
import collections
import csv
import glob
import json
import os
import re
import subprocess
import time

from e2e import BUILD, DATA, SHARED, check, joined, run, scratch, table

LIMIT = 0.05
FLOOR_SHARE, FLOOR_NS = 0.01, 10_000_000


def findings(history, *target):
    return json.loads(run("explain", history, *target, "--format", "json").stdout)["findings"]


def make(folder, name, *arguments):
    traces = os.path.join(folder, name)
    subprocess.run([os.path.join(BUILD, "stealscope-sim"), *arguments, "-o", traces], check=True, capture_output=True)
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
    check(first["text"][:60] in screen, "doors: the timeline shows the verdict, too")
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
    rows = [r for r in table("threads", history, "--top", "0") if int(r["ran_ns"])]
    for row in (rows[0], rows[-1]):  # most and least time lost
        name, wanted = f"{row['machine']}/{row['tid']}", int(row["ran_ns"]) + int(row["lost_ns"])
        found = findings(history, name)
        check(found[0]["healthy"] == (int(row["lost_ns"]) <= LIMIT * wanted), f"target: {name} is healthy up to the limit: {found[0]}")
        causes = [f for f in found if not f["healthy"]]
        text = joined(run("explain", history, name).stdout)
        check(all(f["text"].split(";")[0] in text for f in found[:3]), f"target: explain {name} writes its findings: {text}")
        check(sum(f["ns"] for f in causes) <= int(row["lost_ns"]), f"target: {name} lost {row['lost_ns']} ns")


def check_order(found):
    """Within equal ranks the larger loss comes first, except of similar losses."""
    ranks = {"culprit": 0, "limit": 0, "chain": 0, "overcommitted": 0, "unknown": 1, "vm-exits": 2, "host-blocked": 2, "own-threads": 3,
             "wakeup-latency": 3}
    order = [ranks.get(f["kind"], 4) for f in found]
    check(order == sorted(order), f"ranks: {[f['kind'] for f in found]}")


def check_recorder(history):
    """No thread that records is a victim."""
    for f in findings(history):
        name = (f["target"] or "").split(" ", maxsplit=1)[-1]
        check(not re.match(r"(lttng|trace-cmd|perf|xentrace|stealscope)\b", name), f"recorder: {f['text']}")


class Demand:
    """What a thread of the host wanted, by the truth of the simulator: ns that it ran and lost, and its longest wait."""

    def __init__(self):
        self.name, self.ran, self.lost, self.longest, self.life = "", 0, 0, 0, 0

    def share(self):
        return self.lost / max(self.ran + self.lost, 1)

    def is_victim(self):
        long_enough = self.ran + self.lost >= FLOOR_SHARE * self.life or self.longest >= FLOOR_NS
        return self.share() > LIMIT and long_enough and self.name != "lttng-consumerd"


def truth_of(traces):
    """Returns the demand of each thread of the host by its TID."""
    threads = collections.defaultdict(Demand)
    first, last = None, None
    with open(os.path.join(traces, "truth", "intervals.csv"), encoding="utf-8", newline="") as f:
        for r in csv.DictReader(f):
            path, start, end = r["path"].split("/"), int(r["start"]), int(r["end"])
            first, last = min(start, first or start), max(end, last or end)
            if path[1:3] != ["Host", "Threads"]:
                continue
            thread = threads[int(path[3])]
            if path[4] == "Name":
                thread.name = r["value"]
            if path[4] == "Status" and r["value"] == "RUNNING":
                thread.ran += end - start + 1
            if path[4] == "Status" and r["value"] == "PREEMPTED":
                thread.lost += end - start + 1
                thread.longest = max(thread.longest, end - start + 1)
    for thread in threads.values():
        thread.life = last - first + 1
    return threads


def check_victims(traces):
    """A host without VMs and groups: a thread is the victim if it lost more than the limit of what it wanted and wanted enough
    by the truth, and the first one lost most. (Each thread is a process of its own: others took what it lost.)"""
    history = traces.rstrip("/") + ".host.steal"
    run("index", "--host", os.path.join(traces, "host"), "-o", history)
    truth = truth_of(traces)
    victims = {tid for tid, thread in truth.items() if thread.is_victim()}
    found = findings(history)
    first = found[0]
    check(first["healthy"] == (not victims), f"limit: {first['text']}; victims by the truth: {victims}")
    for f in found:
        tid = int(re.search(r"/(\d+)", f["target"] or "/0")[1])
        check(f["healthy"] or tid in victims, f"limit: {f['text']}")
        if f["healthy"] or f is not first:
            continue
        most = max(truth[v].lost for v in victims)
        check(truth[tid].lost >= 0.9 * most, f"order: {f['text']}, but a thread lost {most} ns")
        check(f["ns"] <= truth[tid].lost * 1.001 + 1000, f"truth: {f['text']}, lost {truth[tid].lost} ns")
    return found, truth


def check_server(folder):
    """A server that sleeps 90 % of the time and waits half of the rest is not healthy."""
    found, truth = check_victims(make(folder, "server", "victims", "--plant", "server"))
    (server,) = [thread for thread in truth.values() if thread.name == "nginx"]
    check(server.ran + server.lost < 0.15 * server.life and server.share() >= 0.4, "server: the truth")
    check(found[0]["target"].endswith("nginx") and found[0]["culprit"]["name"].endswith("burnP6"), f"server: {found[0]['text']}")


def check_floor(folder):
    """Of two threads that want less than 1 % of the time, the one with a wait of 10 ms is a victim."""
    found, truth = check_victims(make(folder, "floor", "victims", "--plant", "floor", "--duration", "8s"))
    thread = {thread.name: thread for thread in truth.values()}
    for name in ("once", "never"):
        wanted = thread[name].ran + thread[name].lost
        check(wanted < FLOOR_SHARE * thread[name].life and thread[name].share() > LIMIT, f"floor: the truth of {name}")
    check(thread["never"].longest < FLOOR_NS <= thread["once"].longest, "floor: the longest waits by the truth")
    check([f["target"].split(" ")[1] for f in found] == ["once"], f"floor: {[f['text'] for f in found]}")


def check_tiers(folder):
    """A guest comes before threads of the host that lost more."""
    traces = make(folder, "beside", "victims", "--plant", "beside")
    host = [thread for thread in truth_of(traces).values() if thread.name == "make"]
    found = findings(index(traces))
    check(found[0]["target"] == "Debian" and found[0]["culprit"]["name"].endswith("burnP6"), f"tiers: {found[0]['text']}")
    check(all(thread.lost > found[0]["ns"] and thread.share() > found[0]["share"] for thread in host), "tiers: the truth")
    check(all(f["target"].split("/")[0] == "Debian" for f in found), "tiers: a thread of the host is a victim only alone")


def check_groups(folder):
    """Units instead of VMs: time that others took comes before more time that a unit's own threads took."""
    traces = make(folder, "own", "victims", "--plant", "own")
    history = index(traces)
    check_base(history)
    check_moment(history)
    found = findings(history)
    check_order(found)
    own = [f for f in found if f["kind"] == "own-threads"]
    check(found[0]["target"] == "web.service" and found[0]["culprit"]["name"].endswith("burnP6"), f"groups: {found[0]['text']}")
    check(found[0]["share"] > found[1]["share"] and found[0]["ns"] >= 0.95 * found[1]["ns"], "order: of similar losses the larger share")
    check([f["target"] for f in own] == ["batch.service"] and own[0]["ns"] > 3 * found[0]["ns"], f"groups: {own}")
    check(not any("/" in f["target"] and f["target"].split("/")[0] != "host" for f in found), "groups: no thread repeats its unit")
    with open(os.path.join(traces, "session.yaml"), "r+", encoding="utf-8") as f:  # the same machine as a VM without a host trace
        session = f.read()
        f.seek(0)
        f.write(session.replace("host:\n", "guests:\n- name: own\n", 1))
    inside = findings(index(traces))
    for of_host, of_guest in zip(found, inside, strict=True):
        same = [f["target"].replace("own/", "host/") for f in (of_host, of_guest)]
        check(same[0] == same[1] and abs(of_host["ns"] - of_guest["ns"]) < 1e6, f"groups: in a VM alone: {of_guest['text']}")


def check_busy_recorder(folder):
    """The recorder's threads and unit wait longest by the truth. They are culprits, but no victims."""
    traces = make(folder, "recorder", "victims", "--plant", "recorder")
    truth = truth_of(traces).values()
    busy = [thread.lost for thread in truth if thread.name == "lttng-consumerd" and thread.share() > 0.5]
    check(len(busy) == 2 and min(busy) > max(thread.lost for thread in truth if thread.name == "burnP6"), "recorder: the truth")
    for found in (findings(index(traces)), check_victims(traces)[0]):  # with units, and without
        check(not any("lttng" in f["target"] for f in found), f"recorder: {[f['text'] for f in found]}")
        check("burn" in found[0]["target"] and "lttng" in found[0]["culprit"]["text"], f"recorder: it is the culprit: {found[0]['text']}")


def check_events(folder):
    """A pause of the VM comes first in its rank, whoever took more time."""
    traces = make(folder, "paused", "tenant", "--plant", "pause", "--seed", "4")
    first = findings(index(traces))[0]
    check(first["kind"] == "limit" and first["reason"] == "pause" and first["ns"] >= 100_000_000, f"events: {first['text']}")


def check_names(history):
    """Threads of one machine with one name are one culprit: its time is the sum of their rows in the matrix."""
    f = next(f for f in findings(history) if f["kind"] == "culprit" and f["target"] == "Debian")
    name = f["culprit"]["text"].split(" of ")[0].split(" ")[-1]
    vcpus = {r["target"].replace("vCPU", "CPU") for r in table("gaps", history, "Debian", "--top", "0")}
    rows = [r for cpu in vcpus for r in table("steal", history, cpu, "--by", "thread") if r["culprit"].endswith(name)]
    names = {r["culprit"] for r in rows}
    check(len(names) > 1 and f["ns"] == sum(int(r["ns"]) for r in rows), f"names: {f['text']}, rows: {rows}")


def check_silent(history, reason):
    """Nothing can be said, for a reason with a code, and nobody is called healthy."""
    (only,) = findings(history)
    check(only["kind"] == "nothing" and not only["healthy"] and only["moment"] is None, f"evidence: {only['text']}")
    check(only["reason"] == reason and only["confidence"] == "unknown", f"evidence: {only['reason']}, not {reason}")
    check("healthy" not in run("explain", history).stdout, "evidence: explain")


def check_unknown(folder):
    """Time without a culprit comes after time that others took, whichever is more, and has the code of its reason."""
    ahead = {}
    for world, seed in (("random", "32"), ("overcommit", "7")):
        found = findings(index(make(folder, "unknown_" + world, world, "--lost", "0.3", "--duration", "1s", "--seed", seed)))
        unknown = [f for f in found if f["kind"] == "unknown"]
        check(unknown and all(f["culprit"] is None and f["reason"] == "lost-events" for f in unknown), f"unknown: {world}")
        check(all(f["confidence"] == "unknown" for f in unknown), f"unknown: confidence in {world}")
        check_order(found)
        ahead[world] = found[0]["ns"] < unknown[0]["ns"] if found[0]["kind"] != "unknown" else None
    check(ahead == {"random": None, "overcommit": True}, f"unknown: first, and after a smaller known loss: {ahead}")


def check_nothing(folder):
    """No layout, no scheduler events, most events lost, CPUs that were not recorded."""
    traces = make(folder, "silent", "fibonacci", "--duration", "500ms")
    silent = os.path.join(folder, "silent.steal")
    run("index", "--host", os.path.join(traces, "host"), "--layout", "perf", "-o", silent)  # it describes none of LTTng's events
    check_silent(silent, "no-layout")
    for world in ("fibonacci", "groups", "tenant"):
        check_silent(index(make(folder, world + "_dark", world, "--no-sched", "--duration", "1s")), "no-scheduler-events")
    for seed in ("1", "2", "3"):
        check_silent(index(make(folder, "lost" + seed, "fibonacci", "--lost", "0.97", "--seed", seed)), "lost-events")
    drowsy = index(make(folder, "drowsy", "pulse", "--no-wakeups", "--duration", "1s"))
    first = findings(drowsy)[0]
    check(first["kind"] == "unknown" and not first["healthy"] and first["reason"] == "no-wakeups", f"wakeups: {first}")
    check("healthy" not in run("explain", drowsy).stdout, "wakeups: explain")
    traces = make(folder, "blind", "overcommit", "2", "--pcpus", "8", "--duration", "500ms")
    for stream in glob.glob(os.path.join(traces, "host", "kernel", "ch*_[1-7]")):
        os.unlink(stream)
    blind = os.path.join(folder, "blind.steal")
    run("index", "--host", os.path.join(traces, "host"), "-o", blind)
    check_silent(blind, "cpus-not-recorded")


def check_quota(folder):
    """Without facts on quotas a note bounds the culprit of waits with the period of a timer; with facts the limit is named."""
    for facts in ("none", "session", "switches"):
        world = index(make(folder, "quota-" + facts, "random", "--seed", "4", "--duration", "2s", "--quota-facts", facts))
        first = findings(world)[0]
        check(("quota-possible" in first["reasons"]) == (facts == "none"), f"quota: {facts}: {first['reasons']}")
        check(first["confidence"] == ("bounded" if facts == "none" else "exact"), f"quota: {facts}: {first['confidence']}")
        check(first["kind"] == ("culprit" if facts == "none" else "limit"), f"quota: {facts}: {first['text']}")


def check_parts(folder):
    """A VM whose gaps and whose exits are below the limit, but not both together, is not healthy."""
    world = index(make(folder, "parts", "random", "--seed", "3085", "--duration", "700ms", "--containers", "--hotplug", "--poll", "200us",
                       "--swap", "0.3"))
    (row,) = [r for r in table("summary", world, "--top", "0") if r["target"] == "Debian"]
    lost, vmm = (int(row[column]) / (int(row["ran_ns"]) + int(row["lost_ns"])) for column in ("lost_ns", "vmm_ns"))
    check(vmm < LIMIT and lost - vmm < LIMIT < lost, f"parts: {lost:.3f} of the time wanted was lost, {vmm:.3f} to the VMM")
    for target in ([], ["Debian"]):
        first = findings(world, *target)[0]
        check(not first["healthy"] and first["target"] == "Debian" and first["share"] > 0, f"parts: {first['text']}")


with scratch() as directory:
    recorded = os.path.join(directory, "data.steal")
    run("index", os.path.join(DATA, "fibonacci"), "-o", recorded)
    for check_rule in (check_base, check_doors, check_moment, check_target, check_recorder):
        check_rule(recorded)
    for world in ("fibonacci", "planted --plant quota", "planted --plant vm", "critical_task", "chain",
                  "tenant --plant quota", "groups", "random --seed 240"):
        made = index(make(directory, world.replace(" ", "_"), *world.split(), "--duration", "2s"))
        check_base(made)
        check_moment(made)
        check_order(findings(made))
    check_names(os.path.join(directory, "chain.steal"))
    host = index(os.path.join(directory, "fibonacci", "host"), "--host")
    check(findings(host)[0]["kind"] != "nothing", "a host alone has an answer")
    alone = os.path.join(directory, "alone.steal")
    run("index", os.path.join(directory, "fibonacci", "guest-Debian"), "-o", alone)
    check(findings(alone)[0]["kind"] == "unknown" and not findings(alone)[0]["healthy"], "source: a guest alone is not healthy")
    for number in range(1, 6):
        check_victims(make(directory, f"host{number}", "groups", "--seed", str(number), "--quota-facts", "none", "--duration", "1s"))
    for check_world in (check_server, check_floor, check_tiers, check_groups, check_busy_recorder, check_events, check_unknown,
                        check_nothing, check_quota, check_parts):
        check_world(directory)
    name = os.path.join(SHARED, "xen_dom0")
    if os.path.isdir(name):
        dom0 = os.path.join(directory, "xen_dom0.steal")
        run("index", name, "-o", dom0)
        check(findings(dom0)[0]["target"] == "Debian", "tiers: guests come before dom0")
        check(findings(dom0, "Domain-0")[0]["target"] == "Domain-0", "tiers: dom0 is the victim when asked for")
