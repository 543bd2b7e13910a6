"""Counters that a BPF program prints at each switch (record --counters), from the kernel to the answer. perf's CPU clock takes
the place of both counters: it counts ns, so each thread has as many as it had ns on a CPU, and an IPC of 1."""
import os
import subprocess

import schema
from e2e import BUILD, check, run, scratch, skip

HELPER = os.path.join(BUILD, "tests", "test_live_counters")


def main(tmp):
    if not os.path.exists(HELPER) or os.geteuid() != 0:
        skip("built without cmocka, or not root")
    with subprocess.Popen([HELPER, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as helper:
        said = helper.stdout.readline().strip()
        if said != "ready":
            skip(said)
        p = run("record", "--host-only", "--no-index", "-e", "bpf_trace:bpf_trace_printk", "-t", "0.7s", "-o", f"{tmp}/r",
                status=None)
        helper.stdin.close()
    if p.returncode:
        skip(p.stderr.strip())
    history = f"{tmp}/h.steal"
    run("index", f"{tmp}/r", "-o", history)
    rows = schema.check_answer(run("threads", history, "--format", "json", "--limit", "0").stdout)
    counted = [r for r in rows if r["machine"] == "host" and r["counted_ns"]]
    # A host may take the CPU of this machine between the reads of the two counters.
    check(counted and abs(sum(r["instructions"] for r in counted) / sum(r["cycles"] for r in counted) - 1) < 0.02,
          f"{len(counted)} threads with counts have an IPC of 1")
    longest = max(counted, key=lambda r: r["counted_ns"])
    total, cycles, ran = (sum(r[k] for r in counted) for k in ("counted_ns", "cycles", "ran_ns"))
    check(abs(longest["cycles"] - longest["counted_ns"]) < 0.05 * longest["counted_ns"] + 5_000_000,
          f"{longest['name']}: {longest['cycles']} in {longest['counted_ns']} ns")
    check(abs(cycles - total) < 0.05 * total + 5_000_000, f"all: {cycles} in {total} ns")
    check(total > 0.7 * ran, f"{total} of {ran} ns are counted")
    plain = run("record", "--counters", "--host-only", "--no-index", "-t", "0.1s", "-o", f"{tmp}/c", status=None)
    lines = [line for line in plain.stderr.splitlines() if "hardware counter" in line]
    check(plain.returncode == 0 and len(lines) <= 1, f"record --counters: {lines or 'with counters'}")


with scratch() as folder:
    main(folder)
