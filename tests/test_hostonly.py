"""What the host alone tells of vCPUs, against what the guests' own traces prove, on every shared recording that has both;
and its critical paths, which end inside of guests of which it names no thread."""
import glob
import os
import sys

from e2e import check, recordings, run, scratch, table

LEAST, MEAN = 98.0, 99.3  # % of the time that is proven
# Where no injections are recorded.  Who was interrupted and writes next is no guest on its way to a halt then, since that may
# have been a timer's interrupt: where it was called one, these had 97.2 and 96.7.
UNTOLD, UNTOLD_IN = 97.5, ("hostonly", "hostonly_tc")
# There the guest is recorded by a shell's cat, which each event of the idle thread wakes: for 877 ms that thread has the CPU
# again and again, 273 ms of them in guest mode, and halts once.  What the host sees is one and the same for it and for
# threads: of 1772 times that the guest sends itself an interrupt (MSR) and then lets it in (VINTR), at the same two
# addresses, 1331 are idle (54.0 ms) and 441 are a thread's (23.1 ms), and back from there to the next MSR 1122 are idle, a
# thread and idle in one (265 ms), 97 idle alone and 394 a thread's alone (93 ms).  No halt is near that could tell which is
# which.  Who knew from the guest would still come to no more than 98.45 % by what led into guest mode and out of it
# and one best split for each pair of these.
NEVER_HALTS = {"cpu_ends_early Debian/CPU0": 96.0}


def status(history, machine, vcpu):
    return [(int(r["start"]), int(r["end"]), r["value"])
            for r in table("intervals", history, f"/Virtual Machines/{machine}/CPUs/CPU{vcpu}/Status")]


def agreement(proven, told):
    """% of the time of `proven`, where that is known, in which `told` says the same."""
    i = j = same = known = 0
    while i < len(proven) and j < len(told):
        ns = min(proven[i][1], told[j][1]) - max(proven[i][0], told[j][0]) + 1
        if ns > 0 and proven[i][2] != "UNKNOWN":
            known += ns
            same += ns if proven[i][2] == told[j][2] else 0
        if proven[i][1] < told[j][1]:
            i += 1
        else:
            j += 1
    return 100 * same / known if known else None


def check_path(history, vcpu, inside):
    path = table("path", history, vcpu)
    tiles = all(int(a["end"]) + 1 == int(b["start"]) for a, b in zip(path, path[1:]))
    named = {(p[who + "system"], p[who + "tid"]) for p in path for who in ("", "thief_")}
    threads = {n for n in named if n[0] in inside and n[1]}
    if not tiles or any(int(p["duration_ns"]) <= 0 for p in path) or threads:
        check(False, f"{history}: the path of {vcpu} tiles its window ({tiles}), and names no thread in a guest ({threads})")
    said = run("path", history, vcpu, "--format", "csv").stderr
    for vm in {p["system"] for p in path if p["kind"] != "unknown"} & inside:
        if f" are inside {vm}: it was not traced" not in said:
            check(False, f"{history}: it is told that the path of {vcpu} goes through {vm}, and ends inside: {said}")


def without_injections(tmp, host):
    """A layout that does not know which interrupts guests were given."""
    layout = "ftrace" if host.endswith(".dat") else "lttng"
    with open(os.path.join(os.environ.get("srcdir", "."), f"src/trace/layouts/{layout}.yaml"), encoding="utf-8") as f:
        lines = f.read().splitlines(True)
    rest = [line for line in lines if "kind: kvm_inj_virq" not in line]
    assert len(rest) == len(lines) - 1, f"{layout}: one rule for injections"
    with open(f"{tmp}/layout.yaml", "w", encoding="utf-8") as f:
        f.writelines(rest)
    return f"{tmp}/layout.yaml"


def compare(folder, host, injections=True):
    """(%, vCPU) of each vCPU whose guest was recorded."""
    guests = {os.path.basename(g).removeprefix("guest-") for g in glob.glob(folder + "guest-*")}
    with scratch() as tmp:
        full, alone = f"{tmp}/full.steal", f"{tmp}/host.steal"
        run("index", folder, "-o", full)
        run("index", "--host", host, "-o", alone, *(() if injections else ("--layout", without_injections(tmp, host))))
        called = {r["host_tid"]: (r["vm"], r["vcpu"]) for r in table("info", alone)}
        for vm, vcpu in called.values():
            check_path(alone, f"{vm}/CPU{vcpu}", {v for v, _ in called.values()})
        for r in table("info", full):
            if r["vm"] in guests and r["host_tid"] in called:
                percent = agreement(status(full, r["vm"], r["vcpu"]), status(alone, *called[r["host_tid"]]))
                if percent is not None:
                    yield percent, f"{os.path.basename(folder.rstrip('/'))} {r['vm']}/CPU{r['vcpu']}"


found, untold = [], []
for folder in recordings():
    host = [h for h in (folder + "host", folder + "host.dat") if os.path.exists(h)]
    # Two threads are one vCPU in `migrate`; where the guest's own trace is all there is, nothing can be left out.
    if host and glob.glob(folder + "guest-*") and "migrate" not in folder:
        found += compare(folder, host[0])
        if os.path.basename(folder.rstrip("/")) in UNTOLD_IN:
            untold += compare(folder, host[0], False)
if not found:
    print("no shared recordings")
    sys.exit(77)
worst, mean = min(f for f in found if f[1] not in NEVER_HALTS), sum(f[0] for f in found) / len(found)
for percent, vcpu in found:
    if vcpu in NEVER_HALTS:
        check(percent >= NEVER_HALTS[vcpu], f"{vcpu}: {percent:.2f} %, wanted {NEVER_HALTS[vcpu]}")
check(worst[0] >= LEAST, f"each of {len(found)} vCPUs: worst {worst[0]:.2f} % ({worst[1]}), wanted {LEAST}")
check(mean >= MEAN, f"mean {mean:.2f} %, wanted {MEAN}")
for percent, vcpu in untold:
    check(percent >= UNTOLD, f"{vcpu}, no injections recorded: {percent:.2f} %, wanted {UNTOLD}")
