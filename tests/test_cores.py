"""Shared cores, slow CPUs, remote memory and moves: the sums equal those of this script, to the ns.

The script computes them on its own: on simulated hosts from the simulator's truth (states and CPUs of all threads and
vCPUs), and on a recording of a KVM host with two threads per core from the text of babeltrace2."""
import bisect
import collections
import csv
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

import schema
from e2e import BUILD, DATA, SOURCE, check, is_brief, run, scratch, seeds, skip, table

IDLE, UNKNOWN = "idle", "unknown"


class Track:
    """Values over time: value(t) and the next change after t."""

    def __init__(self, intervals=()):
        self.start, self.value = [], []
        for start, end, value in sorted(intervals):
            if self.start and self.start[-1] == start:  # replaces the gap that the interval before it left
                self.value[-1] = value
            else:
                self.start.append(start)
                self.value.append(value)
            self.start.append(end + 1)
            self.value.append(None)

    def at(self, t):
        """Returns the value at t and the last ns at which it is valid."""
        i = bisect.bisect_right(self.start, t)
        return self.value[i - 1] if i else None, self.start[i] - 1 if i < len(self.start) else 1 << 62

    def intervals(self, low, high):
        """Yields the parts of [low, high] with one value."""
        while low <= high:
            value, end = self.at(low)
            yield low, min(end, high), value
            low = end + 1


def share(target_ran, siblings, user, low, high):
    """Returns the sums of a target: target_ran yields (start, end, CPU); user[CPU]: track of the users of a CPU."""
    sums = collections.Counter()
    for start, end, cpu in target_ran:
        t, end = max(start, low), min(end, high)
        while t <= end:
            users, until = [], end
            for other in siblings.get(cpu, ()):
                value, last = user[other].at(t)
                users.append(value)
                until = min(until, last)
            busy = [u for u in users if u not in (None, IDLE)]
            for u in busy:
                sums["with", u] += until - t + 1
            sums["shared" if busy else UNKNOWN if None in users or cpu not in siblings else "alone"] += until - t + 1
            sums["ran"] += until - t + 1
            t = until + 1
    return sums


def sharer_key(text):
    """Returns the key of a user of a CPU by its name in an answer."""
    vcpu = re.fullmatch(r"(.+)/vCPU(\d+)", text)
    if vcpu:
        return vcpu[1], int(vcpu[2])
    thread = re.match(r"host/(\d+)( |$)", text)
    return int(thread[1]) if thread else "handler"


def answers(history, *window):
    """Returns the window of the answers and {target: sums} of `steal --by core`."""
    text = run("steal", history, "--by", "core", *window, "--format", "json", "--limit", "0").stdout
    schema.check_answer(text)
    document = json.loads(text)
    sums = collections.defaultdict(collections.Counter)
    for row in document["rows"]:
        target = sharer_key(row["target"])
        sums[target][row["kind"]] += row["ns"]
        sums[target]["ran"] += row["ns"]
        if row["kind"] == "shared":
            sums[target]["with", sharer_key(row["sharer"])] += row["ns"]
    return document["window"]["start"], document["window"]["end"], sums


def known(sums):
    """Returns the sums that are not 0."""
    return collections.Counter({k: v for k, v in sums.items() if v})


# ---- Simulated hosts

def read_truth(folder):
    tracks = collections.defaultdict(list)
    with open(f"{folder}/truth/intervals.csv", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            tracks[row["path"]].append((int(row["start"]), int(row["end"]), row["value"]))
    return {path: Track(intervals) for path, intervals in tracks.items()}


def cpu_topology(folder):
    """Returns {CPU: (core, node)} of the session file."""
    with open(f"{folder}/session.yaml", encoding="utf-8") as f:
        rows = re.findall(r"(\d+): \{core: (\d+)(?:, llc: \d+)?, node: (\d+)", f.read())
    return {int(cpu): (int(core), int(node)) for cpu, core, node in rows}


def siblings_of(topology):
    return {cpu: [c for c, (core, _) in topology.items() if core == own and c != cpu] for cpu, (own, _) in topology.items()}


def cpu_user(truth, vcpus, cpu, low, high):
    """Returns the track of the users of a host CPU: a handler, a vCPU, a thread, or none."""
    current, handler = truth[f"/Host/CPUs/CPU{cpu}/Current Thread"], truth[f"/Host/CPUs/CPU{cpu}/Interrupt"]
    of_thread = {tid: [(truth[f"{root}/Host Thread"], key) for key, root, of in vcpus if of == tid] for _, _, tid in vcpus}
    out = []
    for start, end, tid in current.intervals(low, high):
        for first, last, irq in handler.intervals(start, end):
            user = "handler" if irq else None if tid is None else IDLE if tid == "0" else int(tid)
            for track, key in of_thread.get(user, ()):
                if track.at(first)[0] == tid:
                    user = key
            out.append((first, last, user))
    return Track(out)


def runs_on(truth, root, node, low, high):
    """Yields the intervals of a thread or vCPU in which it ran, with its CPU of the host; node: its CPU attribute."""
    for start, end, status in truth[f"{root}/Status"].intervals(low, high):
        if status != "RUNNING":
            continue
        for first, last, cpu in truth[f"{root}/{node}"].intervals(start, end):
            yield first, last, int(cpu)


def on_host(truth, machine, parents, parts):
    """Converts CPUs of a machine to CPUs of the host, level by level."""
    if machine == "host":
        return parts
    out = []
    for start, end, cpu in parts:
        track = truth[f"/Virtual Machines/{machine}/CPUs/CPU{cpu}/pCPU"]
        out += [(a, b, int(p)) for a, b, p in track.intervals(start, end)]
    return on_host(truth, parents[machine], parents, out)


def check_frequencies(folder, history, truth, keys, parents, low, high):
    """Time below 90 % of the base frequency, time on another node than the memory, and moves, of the VMs."""
    changes, nodes = collections.defaultdict(list), {c: n for c, (_, n) in cpu_topology(folder).items()}
    with open(f"{folder}/truth/frequencies.csv", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            changes[int(row["cpu"])].append((int(row["at"]), int(row["khz"])))
    khz = {}
    for cpu, all_changes in changes.items():
        at = [t for t, _ in all_changes] + [1 << 62]
        khz[cpu] = Track([(at[i], at[i + 1] - 1, value) for i, (_, value) in enumerate(all_changes) if at[i] < at[i + 1]])
    with open(f"{folder}/session.yaml", encoding="utf-8") as f:
        memory = {vm: int(node) for vm, node in re.findall(r"name: (\S+), dir: \S+, memory: \{(\d+): 4096", f.read())}
    window = ["--from", "20%", "--to", "90%"]
    rows = {r["target"]: r for r in schema.check_answer(run("summary", history, *window, "--format", "json").stdout)}
    schema.check_answer(run("threads", history, *window, "--format", "json").stdout)
    compared = 0
    for vm in {k[0] for k, _, _ in keys}:
        expected = collections.Counter()
        for key, root, _ in keys:
            if key[0] != vm:
                continue
            last = None
            for start, end, cpu in on_host(truth, parents[vm], parents, list(runs_on(truth, root, "pCPU", low, high))):
                expected["moves"] += last not in (None, cpu)
                expected["node_moves"] += last is not None and nodes[last] != nodes[cpu]
                expected["remote"] += (nodes[cpu] != memory.get(vm)) * (end - start + 1)
                last = cpu
                for a, b, value in khz.get(cpu, Track()).intervals(start, end):
                    expected["slow"] += (b - a + 1) * (value is not None and value * 10 < 2500000 * 9)
        row = rows.get(vm)
        if row is None or not row["ran_ns"] or vm not in memory or len(set(nodes.values())) < 2:
            continue
        got = {"moves": row["moves"], "node_moves": row["node_moves"], "remote": row["remote_ns"],
               "slow": row["slow_ns"] or 0}
        check(all(got[k] == expected[k] for k in got), f"{vm}: {got}, as by the truth {dict(expected)}")
        compared += 1
    return compared


def check_requests(folder, history, truth, parents, others, user, low, high):
    """The shared time of requests is that of their server threads."""
    with open(f"{folder}/truth/requests.csv", encoding="utf-8") as f:
        servers = {(r["machine"], int(r["start"])): int(r["tid"]) for r in csv.DictReader(f)}
    if not servers:
        return 0
    compared = 0
    for row in schema.check_answer(run("latency", "requests", history, "--format", "json", "--limit", "0").stdout):
        tid = servers.get((row["machine"], row["start"]))
        inside = low <= row["start"] <= row["end"] <= high
        if tid is None or row.get("shared_ns") is None or row["machine"] not in parents or not inside:
            continue
        root = f"/Virtual Machines/{row['machine']}/Threads/{tid}"
        parts = []
        for start, end, cpu in runs_on(truth, root, "CPU", row["start"], row["end"]):
            parts += on_host(truth, row["machine"], parents, [(start, end, cpu)])
        want = share(parts, others, user, row["start"], row["end"])
        check(want[UNKNOWN] or row["shared_ns"] == want["shared"],
              f"request {row['request']}: {row['shared_ns']}, as by the truth {dict(want)}")
        compared += 1
    return compared


def check_world(folder, seed, siblings, *more):
    subprocess.run([os.path.join(BUILD, "stealscope-sim"), "random", "--seed", str(seed), "--siblings", str(siblings),
                    "--perfect-clocks", "--duration", "400ms", *more, "-o", folder], check=True, capture_output=True)
    history = f"{folder}/h.steal"
    run("index", folder, "--sync", "none", "-o", history)
    low, high, got = answers(history, "--from", "20%", "--to", "90%")
    truth = collections.defaultdict(Track, read_truth(folder))
    with open(f"{folder}/truth/vcpus.csv", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    parents = {r["vm"]: r["parent"] for r in rows}
    keys = [((r["vm"], int(r["vcpu"])), f"/Virtual Machines/{r['vm']}/CPUs/CPU{r['vcpu']}",
             int(r["host_tid"]) if r["parent"] == "host" else None) for r in rows]
    topology = cpu_topology(folder)
    user = {cpu: cpu_user(truth, keys, cpu, low, high) for cpu in topology}
    others, exact = siblings_of(topology), 0
    expected = {key: share(on_host(truth, parents[key[0]], parents, list(runs_on(truth, root, "pCPU", low, high))),
                           others, user, low, high) for key, root, _ in keys}
    for path in truth:
        thread = re.fullmatch(r"/Host/Threads/(\d+)/Status", path)
        if thread and int(thread[1]) not in [tid for _, _, tid in keys]:
            parts = runs_on(truth, path[:-len("/Status")], "CPU", low, high)
            expected[int(thread[1])] = share(parts, others, user, low, high)
    for target, sums in got.items():
        want = expected[target]
        if sums[UNKNOWN]:
            check(sums["ran"] == want["ran"] and sums["alone"] <= want["alone"], f"{target}: at most as by the truth")
            continue
        if siblings <= 2:
            check(known(sums) == known(want), f"{target}: {dict(sums)}, as by the truth {dict(want)}")
        else:  # several sharers at a time: each counts, and the time alone is exact
            sums["ran"] = sums["shared"] = want["ran"] = want["shared"] = 0
            check(known(sums) == known(want), f"{target}: {dict(sums)}, as by the truth {dict(want)}")
        exact += 1
    # A CPU without any event before the window has an unknown user.
    check(exact >= len(got) // 2 or seed > 100, f"seed {seed}: {exact} of {len(got)} targets have no unknown time")
    check(all(expected[t]["ran"] == 0 for t in expected if t not in got), "the other targets did not run")
    shared = sum(s["shared"] + s["with", "handler"] for s in got.values())
    return (shared, check_frequencies(folder, history, truth, keys, parents, low, high),
            check_requests(folder, history, truth, parents, others, user, low, high))


# ---- A recording of a host with two threads per core

def events(trace):
    """Yields (time, CPU, name, fields) of a trace of LTTng."""
    line = re.compile(r"\[(\d+)\.(\d+)\] .*? (\w+): \{ cpu_id = (\d+) \}.*\{(.*)\}$")
    p = subprocess.run(["babeltrace2", "--clock-seconds", trace], capture_output=True, text=True, check=True)
    for match in map(line.match, p.stdout.splitlines()):
        if match:
            yield int(match[1]) * 10**9 + int(match[2]), int(match[4]), match[3], match[5]


def read_host(trace, vcpus):
    """Returns the users of each CPU and, by TID, the intervals in which a thread was scheduled in, from raw events."""
    current, depth, since = {}, collections.Counter(), {}
    users, ran = collections.defaultdict(list), collections.defaultdict(list)
    entered, last = {}, 0

    def user(cpu):
        if depth[cpu]:
            return "handler"
        tid = current.get(cpu)
        return None if tid is None else IDLE if tid == 0 else vcpus.get(tid, tid)

    def change(cpu, t, new_tid=None, nesting=None):
        before = user(cpu)
        if new_tid is not None:
            if current.get(cpu) and current[cpu] in entered:
                ran[current[cpu]].append((entered.pop(current[cpu]), t - 1, cpu))
            entered[new_tid] = t
            current[cpu] = new_tid
        if nesting is not None:
            depth[cpu] = nesting
        if user(cpu) != before:
            if t > since.get(cpu, t):
                users[cpu].append((since[cpu], t - 1, before))
            since[cpu] = t

    for t, cpu, name, fields in events(trace):
        last = t
        since.setdefault(cpu, t)
        if name == "sched_switch":
            change(cpu, t, new_tid=int(re.search(r"next_tid = (\d+)", fields)[1]), nesting=0)
        elif name in ("irq_handler_entry", "irq_softirq_entry", "timer_hrtimer_expire_entry"):
            change(cpu, t, nesting=depth[cpu] + 1)
        elif name in ("irq_handler_exit", "irq_softirq_exit", "timer_hrtimer_expire_exit"):
            change(cpu, t, nesting=max(depth[cpu] - 1, 0))
    for cpu, start in since.items():
        users[cpu].append((start, last, user(cpu)))
        if current.get(cpu) in entered:
            ran[current[cpu]].append((entered[current[cpu]], last, cpu))
    return {cpu: Track(rows) for cpu, rows in users.items()}, ran


def check_export(folder, history):
    """The tables core_time and core_sharer have the sums of `steal --by core`."""
    run("export", history, "--to", f"csv:{folder}", "--only", "run,core_time,core_sharer")
    tables = {}
    for name in ("core_time", "core_sharer"):
        with open(glob.glob(f"{folder}/{name}/*.csv")[0], newline="", encoding="utf-8") as f:
            tables[name] = list(csv.DictReader(f))
    _, _, got = answers(history)
    exported = collections.defaultdict(collections.Counter)
    for row in tables["core_time"]:
        key = (row["machine"], int(row["cpu"])) if row["cpu"] else int(row["tid"])
        exported[key].update({k: int(row[f"{k}_ns"]) for k in ("ran", "alone", "shared", UNKNOWN)})
    for row in tables["core_sharer"]:
        key = (row["machine"], int(row["cpu"])) if row["cpu"] else int(row["tid"])
        vcpu = re.fullmatch(r"vCPU(\d+)", row["sharer_name"])
        sharer = "handler" if row["kind"] == "irq" else int(row["sharer_tid"] or 0) or (row["sharer_machine"], int(vcpu[1]))
        exported[key]["with", sharer] += int(row["ns"])
    check({k: known(v) for k, v in exported.items()} == {k: known(v) for k, v in got.items()}, "the exported tables agree")


def check_screen(folder, history, t):
    """The viewer shows the other CPU of the core below the CPU of the selected row."""
    with open(f"{folder}/keys", "w", encoding="utf-8") as f:
        f.write(f":web/CPU0\n:goto {t}\n:screen {folder}/screen!\n")
    run("view", history, "--script", f"{folder}/keys", "--size", "100x30", "--glyphs", "ascii")
    with open(f"{folder}/screen", encoding="utf-8") as f:
        lines = f.read().splitlines()
    on = next(i for i, line in enumerate(lines) if "on CPU0 " in line)
    check("vCPU0" in lines[on - 1] and "sibling CPU1 " in lines[on + 1] and "W" in lines[on] and "D" in lines[on + 1],
          "the viewer shows web on CPU0, and db on its sibling CPU1")


def check_recording(folder):
    """Threads of the host: from raw events alone.  vCPUs: the CPUs of their threads from raw events, and the times at which
    the guests' own schedulers had work from the history."""
    with tarfile.open(os.path.join(DATA, "smt.tar.xz")) as tar:
        tar.extractall(folder, **({"filter": "data"} if sys.version_info >= (3, 12) else {}))
    recording, history = f"{folder}/smt", f"{folder}/smt.steal"
    run("index", recording, "-o", history)
    info = json.loads(run("info", history, "--format", "json", "--limit", "0").stdout)
    vcpus = {row["host_tid"]: (row["vm"], row["vcpu"]) for row in info["rows"]}
    check(len(vcpus) == 4, "two VMs with two vCPUs each")
    host = next(t for t in info["traces"] if t["role"] == "host")
    third = (host["end"] - host["begin"]) // 3
    window = ["--from", str(host["begin"] + third), "--to", str(host["end"] - third // 4)]
    low, high, got = answers(history, *window)
    user, ran = read_host(f"{recording}/host", vcpus)
    others = siblings_of(cpu_topology(recording))
    names = {k: v for v, k in vcpus.items()}
    compared = 0
    for target, sums in got.items():
        if sums[UNKNOWN]:
            continue
        parts = ran[names.get(target, target)]
        if target in names:
            path = f"/Virtual Machines/{target[0]}/CPUs/CPU{target[1]}/Status"
            rows = csv.DictReader(run("intervals", history, path, "--format", "csv").stdout.splitlines())
            status = Track([(int(r["start"]), int(r["end"]), r["value"]) for r in rows])
            parts = [(a, b, cpu) for start, end, cpu in parts for a, b, state in status.intervals(start, end)
                     if state == "RUNNING"]
        want = share(parts, others, user, low, high)
        check(known(sums) == known(want), f"{target}: {dict(sums)}, as by the events {dict(want)}")
        compared += 1
    check(compared > 10 and all(names.get(t, t) for t in got), f"{compared} targets compared")
    check(got["web", 0]["with", ("db", 0)] > got["web", 0]["ran"] // 2, "web/vCPU0 mostly shared its core with db/vCPU0")
    summary = json.loads(run("summary", history, *window, "--format", "json", "--limit", "0").stdout)["rows"]
    web = next(r for r in summary if r["target"] == "web")
    both = [got["web", i] for i in (0, 1)]
    check(web["shared_ns"] == sum(s["shared"] for s in both) and web["alone_ns"] == sum(s["alone"] for s in both) and
          web["ran_ns"] == web["alone_ns"] + web["shared_ns"], "the summary agrees")
    check(web["top_sharer"] == "db/vCPU0", "and names the vCPU on the other CPU of the core")
    check_export(f"{folder}/csv", history)
    check_screen(folder, history, low + (high - low) // 2)
    with open(os.path.join(SOURCE, "man", "stealscope-steal.1"), encoding="utf-8") as f:
        example = re.search(r"^\$ stealscope (steal smt .*)\n((?:.|\n)*?)\n\.Ed", f.read(), re.M)
    shown = run(*example[1].replace(" smt ", f" {history} ").split()).stdout.rstrip("\n")
    check(shown == example[2], "stealscope-steal(1) shows the output of the program")
    pin = json.loads(run("whatif", history, "pin web/CPU1 -> CPU1", *window, "--format", "json").stdout)["notes"]
    check(any(n["code"] == "replay-core-shared" and "CPU1" in n["text"] and "web" in n["text"] for n in pin),
          "whatif notes that the other CPU of the core is busy")
    info = " ".join(run("info", history).stdout.split())
    check("4 CPUs on 2 cores, 1 NUMA node, SMT on" in info, "info shows the cores")
    text = " ".join(run("explain", history, "web/CPU0", *window).stdout.split())
    check("on the same core: db/vCPU0" in text, "explain names it, too")


def check_refusals(folder, world):
    """Hostile topologies are refused with the line, and no history is left."""
    cpu = "{core: 0}"
    for text, reason in (("[]", "topology"), ("{smt: maybe}", "smt"), ("{cpu: 1}", "topology"), ("{cpus: [1]}", "cpus"),
                         ("{core_scheduling: 7}", "core_scheduling"), ("{cpus: {0: {cor: 1}}}", "core"),
                         ("{cpus: {40000: {}}}", "0 to 32767"), ("{cpus: {0: {core: -1}}}", "0 to 32767"),
                         ("{cpus: {-1: {}}}", "0 to 32767"),
                         ("{cpus: {0: {base_khz: 999999999999}}}", "1 to 100000000"), ("{cpus: {0: 7}}", "topology"),
                         ("{cpus: {0: {}, 0x0: {}}}", "twice"), ("{cpus: {0: {}}, cpus: {}}", "twice"),
                         ("{cpus: {" + ", ".join(f"{i}: {cpu}" for i in range(9)) + "}}", "more than 8"),
                         ("{cpus: {" + ", ".join(f"{i}: {{}}" for i in range(8193)) + "}}", "more than 8192")):
        path = f"{folder}/hostile.yaml"
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"host:\n  dir: {world}/host\n  topology: {text}\n")
        refused = run("index", path, "-o", f"{folder}/none.steal", status=2).stderr
        check(f"{path}:3" in refused and reason in refused and refused.count("\n") == 1, refused.strip()[:150])
        check(not os.path.exists(f"{folder}/none.steal"), "no history")
    for text in ("{0: -1}", "{x: 1}", "[0]"):
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"host: {{dir: {world}/host}}\nguests:\n- {{name: x, vcpus: {{0: 1}}, memory: {text}}}\n")
        check("hostile.yaml:3" in run("index", path, "-o", f"{folder}/none.steal", status=2).stderr, f"refused: {text}")


def check_cut(folder, history):
    """A cut of a history keeps the topology, and has the same answer in its window."""
    cut = f"{folder}/cut.steal"
    run("cut", history, "--from", "40%", "--to", "60%", "-o", cut)
    low, high, got = answers(cut)
    check(got and got == answers(history, "--from", str(low), "--to", str(high))[2], "a cut history has the same sums")


with scratch() as scratch_folder:
    seed = seeds(1, 1)[0]
    total = frequencies = requests = 0
    worlds = [(1, 2), (2, 1), (seed, 2, "--nested"), (5, 4, "--pcpus", "8")]
    worlds += [] if is_brief() else [(seed + 1, 2, "--poll", "1ms")]
    for i, world in enumerate(worlds):
        shared, rows, served = check_world(f"{scratch_folder}/{i}", *world)
        total += shared if world[1] > 1 else 0
        frequencies += rows
        requests += served
        check(world[1] > 1 or shared == 0, "cores with one CPU are never shared")
    check(total > 0 and frequencies > 0 and requests > 0, f"some time was shared; {frequencies} VMs, {requests} requests")
    plain = f"{scratch_folder}/plain"
    shutil.copytree(f"{scratch_folder}/0", plain, ignore=shutil.ignore_patterns("session.yaml", "*.steal"))
    run("index", plain, "--sync", "none", "-o", f"{plain}/h.steal")
    for command in (["summary"], ["threads"], ["steal"], ["gaps", "--all-culprits"]):
        with_cores, without = (table(command[0], f"{scratch_folder}/{w}/h.steal", *command[1:]) for w in ("0", "plain"))
        check(without and [{k: r[k] for k in without[0]} for r in with_cores] == without,
              f"{command[0]}: no other figure changes")
    refused = run("steal", plain, "--by", "core", status=2).stderr
    check("topology" in refused and "stealscope-session(5)" in refused, "without a topology: refused, with the remedy")
    check_refusals(scratch_folder, plain)
    check_cut(scratch_folder, f"{scratch_folder}/0/h.steal")
    if not shutil.which("babeltrace2"):
        skip("the recording: no babeltrace2; all simulated hosts passed")
    check_recording(scratch_folder)
