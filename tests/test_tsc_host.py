"""A host and its guest recorded by trace-cmd with the clock x86-tsc, in cycles without a rate: the answers are those of the
same recording in ns, with the rate of timer expirations, of --tsc-hz, of the host, or none."""
import os
import random

from e2e import check, codes, notes, run, scratch, skip, table
from ftrace import Buffer, record, write_dat

HZ = 2_596_091_635
OFFSET = 40_000_000_000  # ns; the guest's clock minus the host's


def switch(prev, following, state=0):
    (prev_tid, prev_comm), (tid, comm) = prev, following
    return record("sched_switch", prev_tid, prev_comm=prev_comm, prev_pid=prev_tid, prev_state=state, next_comm=comm, next_pid=tid)


def make_world(seed):
    """Returns two lists of (ns, bytes, is a timer): of the host's CPU, on which a vCPU and a hog alternate, and of the guest's."""
    rnd, host, guest = random.Random(seed), [], []
    vcpu, hog = (154, "CPU 0/KVM"), (200, "burnP6")
    threads, current, t = [(300, "worker"), (301, "ticker")], 0, 7_000_000_000
    for _ in range(150):
        host.append((t, switch(hog, vcpu), False))
        for _ in range(rnd.randint(3, 9)):
            host.append((t + 2000, record("kvm_entry", 154), False))
            at = t + 3000
            guest.append((at, record("hrtimer_expire_entry", threads[current][0], now=at + OFFSET - rnd.randint(500, 1500)), True))
            at += rnd.randint(50_000, 900_000)
            guest.append((at, switch(threads[current], threads[1 - current]), False))
            current = 1 - current
            t = at + rnd.randint(50_000, 100_000)
            host.append((t, record("kvm_exit", 154, exit_reason=1), False))
            t += rnd.randint(3000, 9000)
        host.append((t, switch(vcpu, hog), False))
        for _ in range(rnd.randint(1, 3)):
            t += rnd.randint(900_000, 4_000_000)
            host.append((t, record("hrtimer_expire_entry", 200, now=t - rnd.randint(500, 1500)), True))
        t += 10_000
    return host, guest


def write(folder, world, clock, timers=(True, True)):
    rate = HZ / 1e9 if clock == "x86-tsc" else 1
    for machine, rows, offset, has_timers in zip(("host", "guest"), world, (0, OFFSET), timers):
        b = Buffer()
        for at, data, is_timer in rows:
            if has_timers or not is_timer:
                b.add(int((at + offset) * rate), data)
        write_dat(f"{folder}/{machine}/trace.dat", [b.bytes()], clock=clock, host=machine,
                  names={154: "CPU 0/KVM", 200: "burnP6"} if machine == "host" else {300: "worker", 301: "ticker"})


def answers(folder, *options, status=0):
    history = folder + ".steal"
    p = run("index", "--host", folder + "/host", "--guest", f"vm={folder}/guest", *options, "-o", history, status=status)
    if status:
        return p.stderr
    return {(r["victim"], r["culprit"]): int(r["ns"]) for r in table("steal", history, "--by", "thread")}


def compare(name, got, want):
    worst = max(abs(got.get(k, 0) - want.get(k, 0)) for k in set(got) | set(want))
    check(set(got) == set(want) and worst <= 3000 + max(want.values()) // 10_000,
          f"{name}: {len(got)} pairs of victim and culprit, largest difference {worst} of {max(want.values())} ns")


with scratch() as tmp:
    made = make_world(1)
    write(f"{tmp}/ns", made, "mono")
    if "built without" in run("index", f"{tmp}/ns", "-o", f"{tmp}/x.steal", status=None).stderr:
        skip("built without libtraceevent")
    expected = answers(f"{tmp}/ns")
    check(expected["vm/vCPU0", "host/200 burnP6"] > 10**8 if ("vm/vCPU0", "host/200 burnP6") in expected else
          any(culprit == "host/200 burnP6" for _, culprit in expected), f"the world: {list(expected)[:4]}")

    write(f"{tmp}/both", made, "x86-tsc")
    compare("rates measured from timers", answers(f"{tmp}/both"), expected)
    run("index", f"{tmp}/both", "-o", f"{tmp}/dir.steal")
    lost = [sum(int(r["lost_ns"]) for r in table("summary", f"{tmp}/{h}.steal") if r["target"].startswith("host")) for h in ("dir", "ns")]
    check(abs(lost[0] - lost[1]) <= lost[1] // 10_000 + 3000, f"a folder of both: the host lost {lost}")
    measured = [n for n in notes("summary", f"{tmp}/both.steal") if n["code"] == "clock-from-rate"]
    check(len(measured) == 2 and all("2596.0" in n["text"] for n in measured), f"a note for each machine: {measured}")
    rows = table("events", f"{tmp}/both.steal", "vm", "--at", "50%", "--around", "20ms")
    check(len(rows) > 10, f"events of a window: {len(rows)}")
    compare("timers take precedence over --tsc-hz", answers(f"{tmp}/both", "--tsc-hz", "1000000000"), expected)

    for folder, timers in (("host", (True, False)), ("none", (False, False))):
        write(f"{tmp}/{folder}", made, "x86-tsc", timers)
        write(f"{tmp}/{folder}.ns", made, "mono", timers)
    compare("the guest has the rate of its host", answers(f"{tmp}/host"), answers(f"{tmp}/host.ns"))

    said = answers(f"{tmp}/none", status=2)
    check("TSC cycles of unknown frequency (use --tsc-hz N" in said, f"refused: {said}")
    check(not os.path.exists(f"{tmp}/none.steal"), "no history without a rate")
    compare("--tsc-hz", answers(f"{tmp}/none", "--tsc-hz", str(HZ)), answers(f"{tmp}/none.ns"))
    check("clock-from-rate" in codes("summary", f"{tmp}/none.steal"), "a note shows the rate")

    write(f"{tmp}/mixed", made, "x86-tsc")
    write(f"{tmp}/mixed.ns", made, "mono")
    os.rename(f"{tmp}/mixed.ns/host/trace.dat", f"{tmp}/mixed/host/trace.dat")
    compare("a host in ns, a guest in cycles", answers(f"{tmp}/mixed"), expected)
