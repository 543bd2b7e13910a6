"""Recordings of a Xen host by xentrace: run states of vCPUs, culprits, caps, pauses, losses, damage, missing texts.

tests/data/xen.tar.xz is a recording of Xen 4.17 (scheduler credit) in software emulation: domain Debian has a cap of 40 % of
a pCPU.  tests/data/xen_requests.tar.xz is one of `record` in dom0 (credit2): a server in Debian
handles bursts of three requests while clamscan runs in dom0 on the same pCPU."""
import collections
import os
import shutil
import tarfile

import xentrace
from e2e import DATA, check, codes, joined, notes, recordings, require_recordings, run, scratch, table
from xentrace import BLOCKED, DOM_ADD, DOM_REM, IDLE, LOST, OFFLINE, RUNNABLE, RUNNING, SLEEP, WRAP, Writer

MHZ = 2000
INFO = f"host : test\ncpu_mhz                : {MHZ}.000\nxen_version            : 4.17.7\nxen_scheduler          : credit2\n"
LIST = ("Name                                        ID   Mem VCPUs\tState\tTime(s)\n"
        "Domain-0                                     0   768     2     r-----     218.3\n"
        "web server                                   1   256     1     -b----      81.5\n"
        "db                                           2   256     1     ------      35.2\n")
D0, D0B, WEB, DB = (0, 0), (0, 1), (1, 0), (2, 0)


def idle(cpu):
    return (IDLE, cpu)


def ns(ticks, millihertz=MHZ * 10**9):
    return ticks * 10**12 // millihertz


def write(folder, data, texts=(("xl-info.txt", INFO), ("xl-list.txt", LIST))):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "xentrace.bin"), "wb") as f:
        f.write(data)
    for name, text in texts:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    return folder


def statuses(history, vm, cpu=0):
    return [(int(r["start"]), int(r["end"]) + 1, r["value"])
            for r in table("intervals", history, f"/Virtual Machines/{vm}/CPUs/CPU{cpu}/Status")]


def sums(history, path):
    total = collections.Counter()
    for r in table("intervals", history, path):
        total[r["value"]] += int(r["end"]) - int(r["start"]) + 1
    return total


def steal(history):
    """Returns {(victim, culprit): ns}."""
    total = collections.Counter()
    for r in table("steal", history):
        total[r["victim"], r["culprit"]] += int(r["ns"])
    return total


def merged(rows):
    """Joins adjacent intervals with the same value, and drops empty ones."""
    out = []
    for begin, end, value in rows:
        if begin == end:
            continue
        if out and out[-1][2] == value and out[-1][1] == begin:
            out[-1] = (out[-1][0], end, value)
        else:
            out.append((begin, end, value))
    return out


def untraced(state):
    """Returns the state of a vCPU whose guest has no trace."""
    return {RUNNING: "RUNNING", RUNNABLE: "PREEMPTED", BLOCKED: "IDLE", OFFLINE: "PREEMPTED"}[state]


def check_all_states(history, data, names, millihertz):
    """All intervals of all vCPUs equal those of the independent reader, to the ns."""
    found = 0
    for (domain, number), rows in xentrace.intervals(xentrace.read(data)).items():
        if domain == IDLE:
            continue
        want = merged([(ns(b, millihertz), ns(e, millihertz), untraced(state)) for b, e, state, _ in rows])
        got = statuses(history, names[domain], number)
        got[-1] = (got[-1][0], got[-1][1] - 1, got[-1][2])  # the history includes the last ns
        check(merged(got) == want, f"{names[domain]}/{number}: {len(want)} intervals are those of the file")
        found += 1
    return found


def check_shipped(tmp):
    with tarfile.open(os.path.join(DATA, "xen.tar.xz")) as tar:
        tar.extractall(tmp)
    folder, history = f"{tmp}/xen_cap", f"{tmp}/cap.steal"
    p = run("index", folder, "-o", history)
    check(p.stderr == "", f"no notes {p.stderr}")
    with open(f"{folder}/host/xentrace.bin", "rb") as f:
        data = f.read()
    check(check_all_states(history, data, {0: "Domain-0", 1: "Debian"}, 2596130 * 10**6) == 3, "three vCPUs")
    total = steal(history)
    debian = sums(history, "/Virtual Machines/Debian/CPUs/CPU0/Out By")
    check(set(debian) - {""} == {"quota"}, f"Debian is kept from running by its cap alone {dict(debian)}")
    check(8.4e9 < total["Debian", "quota"] < 8.5e9, f"the cap takes {total['Debian', 'quota']} ns")
    check(not {c for (v, c), t in total.items() if v == "Debian" and c in ("Domain-0", "host") and t > 10**7},
          f"no other domain is blamed {dict(total)}")
    info = table("info", history)
    check({(r["vm"], r["vcpu"], r["host_tid"]) for r in info} == {("Domain-0", "0", ""), ("Domain-0", "1", ""), ("Debian", "0", "")},
          f"names of the domains, and no host threads {info}")


def check_holes(tmp):
    """Zeros in place of records, as a crash leaves them, never change an answer without a note."""
    with open(f"{tmp}/xen_cap/host/xentrace.bin", "rb") as f:
        data = f.read()
    folder, history = f"{tmp}/hole", f"{tmp}/hole.steal"
    shutil.copytree(f"{tmp}/xen_cap", folder)
    whole = steal(f"{tmp}/cap.steal")
    noted = 0
    for at, size in [(431364, 64)] + [(i * len(data) // 9, n) for i in range(1, 9) for n in (64, 4096)]:
        with open(f"{folder}/host/xentrace.bin", "wb") as f:
            f.write(data[:at] + bytes(size) + data[at + size:])
        p = run("index", folder, "-o", history, status=None)
        silent = p.returncode == 0 and not codes("info", history) and steal(history) != whole
        if silent or p.returncode not in (0, 2):
            check(False, f"{size} zeros at {at}: {dict(steal(history))} instead of {dict(whole)}, notes: {p.stderr}")
        noted += p.returncode == 0 and bool(codes("info", history))
    check(noted > 8, f"{noted} of 17 files have a note, no other answer differs")


def check_requests(tmp):
    """Requests in a domain, recorded in dom0: their latencies are those that the server measured itself."""
    with tarfile.open(os.path.join(DATA, "xen_requests.tar.xz")) as tar:
        tar.extractall(tmp)
    folder, history = f"{tmp}/xen_requests", f"{tmp}/requests.steal"
    if "without lib" in run("index", folder, "-o", history, status=None).stderr:
        check(True, "requests are not checked: this build has no libtraceevent")
        return
    clocks = {r["guest"]: (r["method"], r["containment"], r["error_end_ns"]) for r in table("sync", folder)}
    check(clocks == {name: ("tsc", "1.000000000", "2") for name in ("Domain-0", "Debian")}, f"both kernels are on Xen's clock {clocks}")
    with open(f"{folder}/requests.txt", encoding="utf-8") as f:
        own = [1000 * int(us) for us in f.read().split()[2:]]
    rows = sorted(table("latency", "requests", history, "--top", "0"), key=lambda r: int(r["end"]))
    more = [ns - int(r["latency_ns"]) for ns, r in zip(own, rows)]
    check(len(rows) == len(own) == 42 and min(more) > 0 and sorted(more)[-3] < 200000,
          f"the server measures the time of its marks as well {more}")
    culprits = collections.Counter(r["culprit"].split("/")[0] for r in rows if int(r["provider_high_ns"]) > 10**7)
    check(set(culprits) == {"Domain-0"} and culprits["Domain-0"] > 15, f"the scan in dom0 is the culprit {culprits}")
    taken = collections.Counter()
    for r in table("steal", history, "--by", "thread"):
        taken[r["victim"], r["culprit"]] += int(r["ns"])
    worst = max((k for k in taken if k[0] == "Debian/168 reqgrid"), key=taken.get)
    check(worst[1] == "Domain-0/304 clamscan", f"thread by thread, too {worst}")


def base():
    """Two pCPUs: Domain-0 on pCPU 0; web and db compete for pCPU 1."""
    w = Writer()
    w.switch(1000, 0, idle(0), RUNNABLE, D0)
    w.switch(2000, 1, idle(1), RUNNABLE, WEB)
    w.state(10000, 1, DB, BLOCKED, RUNNABLE)
    w.switch(500000, 1, WEB, RUNNABLE, DB)
    w.switch(900000, 1, DB, BLOCKED, WEB)
    w.switch(5000000, 0, D0, BLOCKED, idle(0))
    w.switch(6000000, 1, WEB, BLOCKED, idle(1))
    return w


def check_culprits(tmp):
    history = f"{tmp}/b.steal"
    folder = write(f"{tmp}/base", base().file())
    run("index", folder, "-o", history)
    total = steal(history)
    # each wait contains the 10 ticks in which the hypervisor switches
    check(total["db", "web server"] == ns(490000) and total["web server", "db"] == ns(400000 - 10),
          f"who had the pCPU on which a vCPU ran next {dict(total)}")
    check(sum(t for (v, _), t in total.items() if v == "db") == ns(490010), "the hypervisor has the rest of the wait")
    check(sum(t for (v, _), t in total.items() if v == "Domain-0") == ns(10), "only the hypervisor delays Domain-0")
    check_all_states(history, base().file(), {0: "Domain-0", 1: "web server", 2: "db"}, MHZ * 10**9)
    # a vCPU that waits while it moves: the pCPU on which it runs next counts from the start of the wait
    w = base()
    w.state(6100000, 0, D0, BLOCKED, RUNNABLE)
    w.switch(6200000, 0, idle(0), RUNNABLE, D0)
    w.state(6300000, 1, WEB, BLOCKED, RUNNABLE)
    w.switch(8000000, 0, D0, RUNNABLE, WEB)
    w.switch(9000000, 0, WEB, BLOCKED, D0)
    run("index", write(f"{tmp}/move", w.file()), "-o", history)
    total = steal(history)
    check(total["web server", "Domain-0"] == ns(1700000), f"a wait for another pCPU than before {dict(total)}")
    check(total["Domain-0", "web server"] == ns(1000000 - 10), "and its culprit's own wait")


def out_by(history, vm):
    return [(int(r["start"]), int(r["end"]) + 1, r["value"])
            for r in table("intervals", history, f"/Virtual Machines/{vm}/CPUs/CPU0/Out By") if r["value"]]


def check_reasons(tmp):
    """Offline: pause, cap, move, unknown; also of a domain that begins and ends within the trace."""
    history = f"{tmp}/r.steal"
    w = base()
    start = 10 * 10**6
    w.switch(start, 0, idle(0), RUNNABLE, D0)
    w.switch(start, 1, idle(1), RUNNABLE, WEB)
    w.put(start + 1000, 0, SLEEP, *WEB)                      # xl pause in Domain-0
    w.switch(start + 2000, 1, WEB, OFFLINE, idle(1))
    w.state(start + 4000000, 0, WEB, OFFLINE, RUNNABLE)
    w.switch(start + 4001000, 1, idle(1), RUNNABLE, WEB)
    w.switch(start + 5000000, 1, WEB, OFFLINE, DB)           # a cap of credit2
    w.switch(start + 6000000, 1, DB, BLOCKED, idle(1))
    w.state(start + 7000000, 1, idle(1), RUNNING, RUNNABLE)
    w.state(start + 7000010, 1, WEB, OFFLINE, RUNNING)
    w.switch(start + 8000000, 1, WEB, OFFLINE, idle(1))      # a move to another runqueue
    w.state(start + 8100000, 0, WEB, OFFLINE, RUNNABLE)
    w.switch(start + 8200000, 1, idle(1), RUNNABLE, WEB)
    w.switch(start + 9000000, 1, WEB, OFFLINE, idle(1))      # unknown: no record of a stop, and no short move
    w.state(start + 109000000, 0, WEB, OFFLINE, RUNNABLE)
    w.switch(start + 109000100, 1, idle(1), RUNNABLE, WEB)
    w.put(start + 109500000, 0, DOM_ADD, 7)
    w.state(start + 110000000, 0, (7, 0), OFFLINE, RUNNABLE)
    w.switch(start + 110000100, 1, WEB, BLOCKED, (7, 0))
    w.switch(start + 110500000, 1, (7, 0), BLOCKED, idle(1))
    w.put(start + 111000000, 0, DOM_REM, 7)
    w.switch(start + 120000000, 0, D0, BLOCKED, idle(0))
    run("index", write(f"{tmp}/reasons", w.file()), "-o", history)
    want = [(2000, 4000000, "pause"), (5000000, 7000010, "quota"), (8000000, 8100000, "move"), (9000000, 109000000, "pause or quota")]
    got = out_by(history, "web server")
    check(got == [(ns(start + b), ns(start + e), why) for b, e, why in want], f"reasons of times offline {got}")
    total = steal(history)
    check(total["web server", "db"] == ns(400000 - 10), f"nobody is blamed for a cap, whoever has the pCPU {dict(total)}")
    new = statuses(history, "dom 7")
    check(new[0][:1] + new[-1][1:2] == (ns(start + 109500000), ns(start + 111000000)) or
          [r for r in new if r[2]][0][0] == ns(start + 109500000), f"a domain exists from its start {new}")
    alive = [r for r in new if r[2]]
    check(alive[-1][1] == ns(start + 111000000), f"and until its end {new}")


def check_run_states_only(tmp):
    """Without the records that include stops, a short time offline may be a pause: its reason is unknown."""
    history = f"{tmp}/o.steal"
    w = base()
    w.switch(7000000, 1, idle(1), RUNNABLE, WEB)
    w.switch(8000000, 1, WEB, OFFLINE, idle(1))
    w.state(8100000, 0, WEB, OFFLINE, RUNNABLE)
    w.switch(8200000, 1, idle(1), RUNNABLE, WEB)
    w.switch(9000000, 1, WEB, BLOCKED, idle(1))
    for records, reason in ((0, "pause or quota"), (1, "move")):
        if records:
            w.record[0].insert(0, xentrace.record(0x2800A, (IDLE, 0, 0, 0), 900))
        run("index", write(f"{tmp}/only", w.file()), "-o", history)
        got = out_by(history, "web server")
        check(got == [(ns(8000000), ns(8100000), reason)], f"{'all records' if records else 'run states only'}: {got}")


def check_loss(tmp):
    """A hole on one pCPU: unknown there, known on the other; who runs after it is in the record, the domain in the low half."""
    history = f"{tmp}/l.steal"
    w = base()
    start = 10 * 10**6
    w.switch(start, 0, idle(0), RUNNABLE, D0)
    w.switch(start, 1, idle(1), RUNNABLE, WEB)
    lost = start + 1000000
    w.put(start + 3000000, 1, LOST, 77, DB[0] | DB[1] << 16, lost & 0xFFFFFFFF, lost >> 32)
    w.put(start + 3000000 + 100, 1, WRAP, 1, 2, 3)
    w.switch(start + 5000000, 1, DB, BLOCKED, idle(1))
    w.state(start + 6000000, 0, WEB, BLOCKED, RUNNABLE)
    w.switch(start + 6000100, 1, idle(1), RUNNABLE, WEB)
    w.switch(start + 9000000, 0, D0, BLOCKED, idle(0))
    run("index", write(f"{tmp}/lost", w.file()), "-o", history)
    found = {}
    for vm in ("Domain-0", "web server", "db"):
        found[vm] = [(b, e) for b, e, value in statuses(history, vm) if value == "UNKNOWN" and b >= ns(start)]
    check(not found["Domain-0"], f"the other pCPU is whole {found}")
    check(found["web server"] == [(ns(lost), ns(start + 3000000) + 1)], f"web is unknown during the loss {found}")
    runs = [r for r in statuses(history, "db") if r[2] == "RUNNING" and r[0] > ns(start)]
    check(runs and runs[-1][:2] == (ns(start + 3000000) + 1, ns(start + 5000000)), f"db runs after the loss {runs}")
    row, = [r for r in notes("info", history) if r["code"] == "lost-events"]
    check("77" in row["text"], "lost records are counted")


def check_losses_overlap(tmp):
    """While a pCPU has a loss, vCPUs that block and wait on another one stay known, unless a later record contradicts."""
    history = f"{tmp}/m.steal"
    w = Writer(3)
    t = 10 * 10**6
    w.switch(t, 0, idle(0), RUNNABLE, D0)
    w.switch(t, 1, idle(1), RUNNABLE, WEB)
    w.switch(t, 2, idle(2), RUNNABLE, DB)
    w.switch(t + 1500000, 2, DB, BLOCKED, idle(2))           # during the loss of pCPU 1
    w.state(t + 1600000, 2, DB, BLOCKED, RUNNABLE)
    w.switch(t + 1700000, 2, idle(2), RUNNABLE, DB)
    w.put(t + 2000000, 1, LOST, 5, WEB[0] | WEB[1] << 16, t + 1000000, 0)
    w.switch(t + 2200000, 1, WEB, BLOCKED, idle(1))          # during the loss of pCPU 0, after that of pCPU 1
    w.switch(t + 2300000, 2, DB, BLOCKED, idle(2))
    w.put(t + 2500000, 0, LOST, 5, D0[0] | D0[1] << 16, t + 1800000, 0)
    w.switch(t + 3000000, 2, idle(2), RUNNABLE, DB)          # its wakeup is lost: the state before it contradicts BLOCKED
    w.switch(t + 4000000, 2, DB, BLOCKED, idle(2))
    w.state(t + 5000000, 0, WEB, BLOCKED, RUNNABLE)
    w.switch(t + 5100000, 1, idle(1), RUNNABLE, WEB)
    w.switch(t + 9000000, 0, D0, BLOCKED, idle(0))
    run("index", write(f"{tmp}/losses", w.file()), "-o", history)
    unknown = {vm: [(b, e) for b, e, value in statuses(history, vm) if value == "UNKNOWN" and b >= ns(t)]
               for vm in ("Domain-0", "web server", "db")}
    check(unknown["Domain-0"] == [(ns(t + 1800000), ns(t + 2500000) + 1)], f"unknown during its own loss {unknown}")
    check(unknown["web server"] == [(ns(t + 1000000), ns(t + 2000000) + 1)], f"known after the loss of its pCPU {unknown}")
    check(unknown["db"] == [(ns(t + 2300000), ns(t + 2500000) + 1)], f"unknown only where records contradict {unknown}")


def check_options(folder, history, whole):
    """Frequency and names as options; they stay in the history, in its session file, and in the cache's key."""
    given = ("--tsc-hz", str(MHZ * 10**6), "--domain", "1=web server", "--domain", "2=db", "--domain", "2=other")
    run("index", folder, *given, "-o", history)
    check(statuses(history, "web server") == whole, "the frequency and the names are options")
    check({r["vm"] for r in table("info", history)} == {"dom 0", "web server", "db"}, "domains without a name are numbered")
    rows = table("events", history, "host", "--at", "50%", "--around", "1s")
    check(rows and all(ns(0) <= int(r["at"]) <= ns(10**7) for r in rows), f"the events are read with the same frequency {rows[:2]}")
    session = f"{os.path.dirname(folder)}/options.yaml"
    with open(session, "w", encoding="utf-8") as f:
        f.write(f"tsc_hz: {MHZ * 10**6}\ndomains: {{ 0: Domain-0, 1: web server }}\nhost: {{ dir: {os.path.basename(folder)} }}\n")
    run("index", session, "-o", history)
    check({r["vm"] for r in table("info", history)} == {"Domain-0", "web server", "dom 2"}, "and keys of a session file")
    run("index", folder, *given[:2], "--domain", "1=host", "--domain", "2=dom 0", "--domain", "32751=last", "-o", history)
    check({r["vm"] for r in table("info", history)} == {"dom 0", "host (2)", "dom 0 (2)"}, "names are unique, and differ from the host's")
    for value in ("web", "1=", "=web", "-1=web", "32752=web", "1=" + "x" * 256, "1:web"):
        p = run("index", folder, *given[:2], "--domain", value, "-o", history, status=1)
        check("--domain" in p.stderr and p.stderr.count("\n") == 1, f"--domain {value[:20]} is refused: {p.stderr[:200]}")
    for text in ("[1]", "{ x: web }", "{ 1: [web] }", "{ 1: '' }", "{ 40000: web }"):
        with open(session, "w", encoding="utf-8") as f:
            f.write(f"tsc_hz: 1000000000\ndomains: {text}\nhost: {{ dir: {os.path.basename(folder)} }}\n")
        p = run("index", session, "-o", history, status=2)
        check("options.yaml:2" in p.stderr, f"domains: {text} is refused with its line: {p.stderr}")


def check_pv_entries(tmp):
    """Hypercalls, traps and emulated instructions are exits of the vCPU that is current on the pCPU; their lengths are unknown."""
    history = f"{tmp}/pv.steal"
    w = Writer()
    w.put(100, 0, 0x802008, 1, 2, 3)
    w.put(900, 0, 0x20100D, 29)                              # before the first run state of Domain-0, which runs since the start
    w.switch(1000, 0, D0, BLOCKED, idle(0))
    w.switch(2000, 1, idle(1), RUNNABLE, WEB)
    for i, (event, words) in enumerate((
            (0x20100D, (23,)), (0x20100D, (23 | 1 << 20, 7)), (0x20110D, (0x77,)), (0x201103, (1, 2, 13)), (0x201003, (1, 14)),
            (0x201104, (1, 2, 3, 4, 5)), (0x201106, (1, 2)), (0x201008, ()), (0x20110B, (1, 2, 3, 4, 5, 6)),
            (0x20200E, (1,)), (0x20100C, (1,)), (0x20100D, ()), (0x20100F, (1,)), (0x201001, (1, 2)))):
        w.put(3000 + i * 100, 1, event, *words)
    w.switch(500000, 1, WEB, RUNNABLE, DB)
    w.put(600000, 1, 0x20100D, 32)
    w.switch(900000, 1, DB, BLOCKED, idle(1))
    run("index", write(f"{tmp}/pv", w.file()), "-o", history)
    rows = {(r["machine"], r["reason"]): (int(r["count"]), r["isa"], r["timed"]) for r in table("exits", history)}
    once = (1, "Xen PV", "0")
    check(rows == {("Domain-0", "hypercall sched_op"): once, ("db", "hypercall event_channel_op"): once,
                   ("web server", "hypercall iret"): (2, "Xen PV", "0"), ("web server", "hypercall 119"): once,
                   ("web server", "trap 13"): once, ("web server", "trap 14"): once, ("web server", "page fault"): once,
                   ("web server", "privileged instruction"): once, ("web server", "FPU restore"): once,
                   ("web server", "page table write"): once}, f"reasons and numbers {rows}")
    check("exit-times-unknown" in codes("exits", history), "a note says that the lengths are unknown")
    names = {r["event"] for r in table("events", history, "host", "--at", "50%", "--around", "1s")}
    check(names == {"other", "xen_pv_entry", "vcpu_state"}, f"events are not called those of KVM {names}")
    total = steal(history)
    check(total["web server", "db"] == ns(400000 - 10), f"no state depends on them {total}")


def check_damage(tmp):
    """Truncated files keep all records before the cut; unknown records are skipped by their length; refusals."""
    history, data = f"{tmp}/d.steal", base().file(window=60)
    w = base()
    for i in range(8):
        w.put(6000100 + i, 0, 0x7F0123 + i, *range(i % 8))
        w.record[1].append(xentrace.record(0xFF0456, tuple(range(7 - i % 8))))
    run("index", write(f"{tmp}/unknown", w.file()), "-o", history)
    check(not codes("info", history), f"unknown records are skipped {codes('info', history)}")
    check(steal(history)["db", "web server"] == ns(490000), "and the others are read")
    whole = statuses_of(data, WEB)
    ends = {len(data[:i]) for i in range(0, len(data), 4) if data[i:i + 4] == xentrace.record(xentrace.CPU_CHANGE, (0, 0))[:4]}
    sizes = [size for size in range(200, len(data)) if (size % 37 == 0 or size % 4 == 0) and size not in ends]
    for size in sizes:
        p = run("index", write(f"{tmp}/cut", data[:size]), "-o", history, status=None)
        got = statuses(history, "web server") if p.returncode == 0 else []
        known = [r for r in got if r[2] not in ("UNKNOWN", "")]
        right = all(r in whole for r in known[:-1]) and \
            all(any(r[0] == w[0] and r[1] <= w[1] and r[2] == w[2] for w in whole) for r in known[-1:])
        if p.returncode not in (0, 2) or not right:
            check(False, f"cut after {size} of {len(data)} bytes: status {p.returncode}, {got}, whole {whole}")
    check(True, f"{len(sizes)} truncated files are read up to the cut, or refused")
    p = run("index", write(f"{tmp}/plain", data, ()), "-o", history, status=2)
    check("xl info" in p.stderr and "--tsc-hz" in p.stderr and "frequency" in p.stderr, f"without the frequency it says what is missing: {p.stderr}")
    check_options(f"{tmp}/plain", history, whole)
    run("index", write(f"{tmp}/unnamed", data, (("a", INFO),)), "-o", history)
    check({r["vm"] for r in table("info", history)} == {"dom 0", "dom 1", "dom 2"}, "domains without names are numbered")
    check("xen-names-unknown" in codes("info", history), "and a note says why")
    p = run("index", write(f"{tmp}/other", data[:12] + b"\0" * 100), "-o", history, status=2)
    check("no xentrace file" in p.stderr, f"a file that only begins like one: {p.stderr}")
    console = "(XEN) Detected 2000.000 MHz processor.\n"
    run("index", write(f"{tmp}/console", data, (("xen.log", console),)), "-o", history)
    check(statuses(history, "dom 1")[1:] == statuses_of(data, WEB)[1:], "Xen's log contains the frequency, too")


def check_words(tmp):
    """Verdict and notes: a cap is no cpu.max, and no note advises KVM's events."""
    cap, plain = f"{tmp}/cap.steal", f"{tmp}/words.steal"
    text = run("summary", cap).stdout.split("\n\n")[0]
    check("the cap of its domain" in text and "Debian" in text and "cpu.max" not in text, f"the verdict names the cap: {text}")
    run("index", write(f"{tmp}/words", base().file()), "-o", plain)
    for command in (("exits",), ("waits",), ("waits", "--polling")):
        found = notes(*command, plain)
        check([r["code"] for r in found] == ["hypervisor-silent"], f"{command}: the note names no events to record {found}")
        check("kvm" not in run(*command, plain).stdout, f"{command}: KVM's events are not mentioned")
    w = Writer()
    w.switch(1000, 0, idle(0), RUNNABLE, D0)
    for i in range(100):
        w.state(2000 + 2000 * i, 0, D0B, BLOCKED, RUNNABLE)
        w.switch(2500 + 2000 * i, 0, D0, RUNNABLE, D0B)
        w.switch(3500 + 2000 * i, 0, D0B, BLOCKED, D0)
    run("index", write(f"{tmp}/own", w.file()), "-o", plain)
    text = joined(run("summary", plain).stdout.split("\n\n")[0])
    check("vCPUs of Domain-0 took" in text and "from each other" in text, f"vCPUs of one domain that share a pCPU: {text}")


def statuses_of(data, vcpu):
    rows = merged([(ns(b), ns(e), untraced(state)) for b, e, state, _ in xentrace.intervals(xentrace.read(data))[vcpu]])
    rows[-1] = (rows[-1][0], rows[-1][1] + 1, rows[-1][2])
    return rows


# States of a vCPU by the state in the hypervisor. BLOCKED although its guest runs a thread: HOST_BLOCKED.
POSSIBLE = {"running": ("RUNNING", "IDLE", "UNKNOWN"), "runnable": ("PREEMPTED", "WAKING"), "offline": ("PREEMPTED", "HOST_BLOCKED"),
            "blocked": ("IDLE", "HOST_BLOCKED", "UNKNOWN")}


def overlaps(want, got):
    """Returns {(value in want, value in got): ns} of two sorted lists of intervals."""
    total, k = collections.Counter(), 0
    for begin, end, value in want:
        while k < len(got) and got[k][1] <= begin:
            k += 1
        i = k
        while i < len(got) and got[i][0] < end:
            total[value, got[i][2]] += min(end, got[i][1]) - max(begin, got[i][0])
            i += 1
    return total


def xenalyze_totals(path):
    """Returns {(domain, vCPU): {state: [intervals, ticks]}} of a summary by xenalyze, which prints counts and rounded means."""
    total, domain, vcpu = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0])), None, None
    with open(path, encoding="utf-8") as f:
        for line in f:
            word = line.split()
            if line.startswith("|-- Domain"):
                domain, vcpu = int(word[2]), None
            elif line.startswith("-- v"):
                vcpu = int(word[1][1:])
            elif line.startswith("pcpu"):
                vcpu = None
            elif vcpu is not None and domain != IDLE and word and word[0] in XENALYZE_STATES:
                found = total[domain, vcpu][XENALYZE_STATES[word[0]]]
                found[0] += int(word[1])
                found[1] += int(word[1]) * int(word[3])
    return total


XENALYZE_STATES = {"running:": "RUNNING", "runnable:": "PREEMPTED", "offline:": "PREEMPTED", "blocked:": "IDLE"}


def check_totals(tmp, name, folder, names, millihertz):
    """Sums per vCPU equal those of xenalyze's summary of the same file, which leaves out the first and last intervals of a vCPU,
    because it does not take the old state from a record."""
    history = f"{tmp}/{name}-host.steal"
    run("index", f"{folder}/host", "-o", history)
    for (domain, vcpu), states in sorted(xenalyze_totals(f"{folder}/host/xenalyze-summary.txt").items()):
        rows, off = statuses(history, names[str(domain)], vcpu), {}
        for state, (n, ticks) in states.items():
            lengths = [e - b for b, e, value in rows if value == state]
            off[state] = min(abs(sum(lengths[first:len(lengths) - last]) - ns(ticks, millihertz)) - 2 * n
                             for first in range(3) for last in range(3))
        check(max(off.values()) <= 0, f"{name}: the sums of {names[str(domain)]}/{vcpu} are those of xenalyze, within 2 ns per "
              f"interval {dict(off)}")


def check_recordings(tmp):
    """Recordings with kernel traces: all states are those of expected_states.tsv, and all events of guests are contained."""
    for folder in [f for f in recordings() if os.path.exists(os.path.join(f, "host", "xentrace.bin"))]:
        name = os.path.basename(folder.rstrip("/"))
        history = f"{tmp}/{name}.steal"
        run("index", folder, "-o", history)
        with open(f"{folder}/host/xl-info.txt", encoding="utf-8") as f:
            mhz, = [line.split()[2] for line in f if line.startswith("cpu_mhz")]
        millihertz = int(mhz.replace(".", "")) * 10**6
        with open(f"{folder}/expected_states.tsv", encoding="utf-8") as f:
            rows = [line.split("\t") for line in f if not line.startswith("#")]
        with open(f"{folder}/host/xl-list-after.txt", encoding="utf-8") as after, \
                open(f"{folder}/host/xl-list-before.txt", encoding="utf-8") as before:
            names = {line.split()[1]: line.split()[0] for line in [*before, *after]}
        names.setdefault("1", "Debian")
        for domain, vcpu in sorted({(r[0], r[1]) for r in rows}):
            want = [(ns(int(r[3]), millihertz), ns(int(r[4]), millihertz), r[2]) for r in rows if (r[0], r[1]) == (domain, vcpu)]
            both = overlaps(want, statuses(history, names[domain], vcpu))
            wrong = {k: t for k, t in both.items() if k[1] not in POSSIBLE[k[0]]}
            if name != "xen_lost":  # there the states are unknown during losses
                check(not wrong, f"{name}: {names[domain]}/{vcpu} as in {len(want)} intervals {wrong}")
        if name != "xen_lost":  # xenalyze guesses the states during losses
            check_totals(tmp, name, folder, names, millihertz)
        for r in table("sync", folder):
            check(float(r["containment"]) == 1, f"{name}: all events of {r['guest']} are contained")
            check(r["method"] == "tsc" or (name, r["guest"]) == ("xen_tsc_emulated", "Debian"), f"{name}: the TSC of {r['guest']}")


def main():
    with scratch() as tmp:
        check_shipped(tmp)
        check_holes(tmp)
        check_culprits(tmp)
        check_reasons(tmp)
        check_run_states_only(tmp)
        check_loss(tmp)
        check_losses_overlap(tmp)
        check_pv_entries(tmp)
        check_requests(tmp)
        check_damage(tmp)
        check_words(tmp)
        require_recordings()
        check_recordings(tmp)


if __name__ == "__main__":
    main()
