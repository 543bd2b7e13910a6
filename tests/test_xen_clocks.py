"""Kernel traces of the domains of random Xen hosts on every trace clock: x86-tsc is xentrace's own clock, exactly; mono and
local (Xen's system time, or a clock with a drift of its own) are found by containment, with error bounds that hold. Each
trace finds its domain, also if records of each pCPU are lost. SEEDS, SEED: as in test_xen_random.py."""
import random

import ftrace
import xentrace
from e2e import check, run, scratch, seeds, skip, table
from test_xen import write
from test_xen_random import INFO, LIST, NAMES, World
from xentrace import IDLE, RUNNING

STEPS = 3000
# trace clock: largest drift against Xen's clock, ppm
CLOCKS = {"x86-tsc": 0, "mono": 0, "local": 60}


def guest_buffers(rnd, truth, modes, domain, clock):
    """Returns the ring buffers of a domain's vCPUs: switches shortly after a vCPU begins to run or enters guest mode, while it
    runs, and before it ends. clock: function from Xen's ns to the trace's."""
    vcpus = sorted(v for v in truth if v[0] == domain)
    buffers = []
    for v in vcpus:
        b, last = ftrace.Buffer(), 0
        for begin, end in modes.get(v) or [(begin, end) for begin, end, state, _ in truth[v] if state == RUNNING]:
            if end - begin < 2000:
                continue
            times = sorted({begin + rnd.randint(50, 900), end - rnd.randint(50, 900),
                            *(rnd.randrange(begin + 50, end - 50) for _ in range(rnd.randint(0, 3)))})
            for t in times:
                at = clock(t)
                if at > last:
                    number = 100 + 10 * v[1]
                    b.add(at, ftrace.record("sched_switch", number, prev_comm="a", prev_pid=number, next_comm="a", next_pid=number + 1))
                    b.add(at + 1, ftrace.record("sched_switch", number + 1, prev_comm="b", prev_pid=number + 1, next_comm="a",
                                                next_pid=number))
                    last = at + 1
        buffers.append(b.bytes())
    return buffers


def random_losses(rnd, pcpus):
    """Returns two losses on each pCPU: (pCPU, first step, last step)."""
    found = []
    for cpu in range(pcpus):
        at = rnd.randrange(20, STEPS // 2)
        found += [(cpu, at, at + rnd.randint(1, STEPS // 8)), (cpu, at + STEPS // 5 + 1, at + STEPS // 4)]
    return found


def check_world(tmp, seed, has_losses):
    rnd, world = random.Random(seed), World(seed, True)
    for _ in range(STEPS):
        world.act()
    world.finish()
    records = xentrace.read(world.file([]))
    truth = {v: rows for v, rows in xentrace.intervals(records).items() if v[0] != IDLE}
    modes = xentrace.guest_mode(records)
    data = world.file(random_losses(rnd, world.pcpus) if has_losses else [])
    folder = write(f"{tmp}/w", data, (("info", INFO), ("list", LIST)))
    lines = {}
    for domain, name in enumerate(("x86-tsc", "mono", "local"), 1):
        drift = rnd.uniform(-CLOCKS[name], CLOCKS[name]) * 1e-6
        offset = 0 if name == "x86-tsc" else rnd.randint(10**9, 10**12)
        lines[NAMES[domain]] = (name, offset, drift)
        buffers = guest_buffers(rnd, truth, modes, domain, lambda t, o=offset, d=drift: t + o + round(t * d))
        ftrace.write_dat(f"{folder}/kernel-{domain}/trace.dat", buffers, name, host=f"host{domain}")
    p = run("index", folder, "-o", f"{tmp}/w.steal", status=None)
    if "without lib" in p.stderr:
        skip("built without libtraceevent")
    rows = {r["guest"]: r for r in table("sync", folder)}
    check(set(rows) == set(lines), f"seed {seed}: each kernel trace finds its domain {sorted(rows)}")
    for domain, (name, offset, drift) in lines.items():
        r = rows[domain]
        guest, host = int(r["ref_guest_ns"]), int(r["ref_host_ns"])
        wrong = abs((guest - offset) / (1 + drift) - host)
        bound = int(r["error_start_ns"] or -1)
        if name == "x86-tsc":
            right = r["method"] == "tsc" and wrong < 2 and bound <= 2
        else:
            right = r["method"] == "containment" and wrong <= bound + 1 and bound < (200000 if has_losses else 20000)
        check(right and float(r["containment"]) == 1, f"seed {seed}: {name} is off by {wrong:.0f} ns, at most {bound}: {r}")


if __name__ == "__main__":
    with scratch() as directory:
        for number in seeds(2, 20):
            check_world(directory, number, False)
            check_world(directory, number, True)
