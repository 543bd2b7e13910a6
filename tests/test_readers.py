"""The events that stealscope reads from CTF are those that the command babeltrace2 prints, with times, CPUs, threads and switches;
a damaged recording gives at least as many, and a note.
SEEDS: number of damaged recordings; SEED: of the damage of the first one."""
import csv
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys

from e2e import DATA, check, run, scratch, seeds, simulate, skip

LINE = re.compile(r"\[(\d+)\.(\d{9})\] (?:\S+ )*?(\w+): \{ (.*) \}$")
SWITCH = re.compile(r'prev_comm = "(.*?)", prev_tid = (\d+).*next_comm = "(.*?)", next_tid = (\d+)')


def trace_files(folder):
    return sorted(os.path.join(base, f) for base, _, files in os.walk(folder) for f in files
                  if os.path.basename(base) in ("kernel", "index"))


def flip_bit(rng, data, first=0, size=None):
    at = first + rng.randrange(size or len(data) - first)
    data[at] ^= 1 << rng.randrange(8)


def overwrite(rng, data):
    at, n = rng.randrange(len(data)), rng.choice((2, 8, 64, 1000))
    data[at:at + n] = rng.randbytes(len(data[at:at + n]))


def clear(rng, data):
    at, n = rng.randrange(len(data)), rng.choice((4, 64, 4096))
    data[at:at + n] = bytes(len(data[at:at + n]))


def swap_blocks(rng, data):
    a, b = (4096 * rng.randrange(max(1, len(data) // 4096)) for _ in range(2))
    data[a:a + 4096], data[b:b + 4096] = data[b:b + 4096], data[a:a + 4096]


DAMAGE = {
    "bit": flip_bit,
    "head": lambda rng, data: flip_bit(rng, data, 4096 * rng.randrange(max(1, len(data) // 4096)), min(80, len(data) % 4096 or 80)),
    "bytes": overwrite,
    "zeros": clear,
    "blocks": swap_blocks,
    "end": lambda rng, data: data.__delitem__(slice(rng.randrange(len(data)), None)),
}


def damage(rng, folder):
    """Damages one file.  Returns a description."""
    path, kind = rng.choice(trace_files(folder)), rng.choice(("bit", "head", "bytes", "zeros", "blocks", "end", "missing"))
    name = os.path.relpath(path, folder)
    if kind == "missing":
        os.unlink(path)
        return f"{name} is missing"
    with open(path, "rb") as f:
        data = bytearray(f.read())
    if data:
        DAMAGE[kind](rng, data)
    with open(path, "wb") as f:
        f.write(data)
    return f"{kind} of {name}"


def printed_events(folder):
    """Returns the events that babeltrace2 prints until it fails or loops, and whether it reads all."""
    p = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", folder], capture_output=True, check=False,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (10, 10)))
    events = []
    if p.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return events, False
    for line in p.stdout.decode(errors="replace").splitlines():
        m = LINE.match(line)
        if not m:
            continue
        cpu, tid, switch = re.search(r"\bcpu_id = (\d+)", m[4]), re.search(r"[^_]tid = (\d+)", m[4]), None
        if m[3] == "sched_switch":
            switch = SWITCH.search(m[4]).groups()
        events.append((int(m[1]) * 10**9 + int(m[2]), int(cpu[1]) if cpu else None, switch))
    return sorted(events, key=str), p.returncode == 0


def read_events(history):
    text = run("events", history, "--at", "50%", "--around", "1000h", "--format", "csv", "--limit", "0").stdout
    events = []
    for row in csv.DictReader(io.StringIO(text)):
        if row["event"] == "lost":
            continue
        switch = None
        if row["event"] == "sched_switch":
            switch = re.search(r"prev_tid=(\d+) next_tid=(\d+) .*prev_comm=(.*?) next_comm=(.*?) next_prio", row["fields"])
            switch = (switch[3], switch[1], switch[4], switch[2])
        events.append((int(row["machine_ns"]), int(row["cpu"]), switch))
    return sorted(events, key=str)


def compare(folder, what):
    """Compares each machine's trace.  Returns what became of the worst one."""
    outcomes = ["whole"]
    for machine in sorted(os.listdir(folder)):
        trace, history = os.path.join(folder, machine), f"{folder}.steal"
        if not os.path.isdir(trace):
            continue
        p = run("index", trace, "-o", history, "--sync", "none", status=None)
        printed, is_whole = printed_events(trace)
        check(p.returncode in (0, 2), f"{what}: {p.returncode} {p.stderr.strip()[:300]}")
        if p.returncode:
            check(not is_whole, f"{what}: {machine} is refused, and babeltrace2 fails, too: {p.stderr.strip()[:200]}")
            outcomes.append("refused")
            continue
        own = read_events(history)
        if any(n["kind"] == "damage" for n in json.loads(run("info", history, "--format", "json").stdout)["notes"]):
            check(is_whole or len(own) >= 0.9 * len(printed), f"{what}: {machine}: {len(own)} events of {len(printed)}, and a note")
            outcomes.append("damaged")
        else:
            check(own == printed, f"{what}: {machine}: {len(own)} events are those of babeltrace2 ({len(printed)})")
        os.unlink(history)
    return min(outcomes)


NESTED = """/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := stamp_t;
struct inner { int32_t a; integer { size = 3; align = 1; } bits; }
struct unused { struct inner it; };
struct outer { struct inner first; struct { int32_t x; struct inner again; } second; };
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { integer { size = 32; } magic; }; };
env { domain = "kernel"; tracer_name = "lttng-modules"; };
clock { name = c; freq = 1000000000; };
stream {
	packet.context := struct { int32_t cpu_id; };
	event.header := struct { stamp_t timestamp; };
};
event {
	name = "sched_switch";
	fields := struct {
		struct outer before;
		integer { size = 8; encoding = UTF8; } prev_comm[16]; int32_t prev_tid, prev_prio; struct outer between;
		integer { size = 64; align = 8; } prev_state; integer { size = 8; encoding = UTF8; } next_comm[16]; int32_t next_tid, next_prio;
	};
};
"""


def write_nested(folder):
    """Writes a trace whose events have structures inside structures, one of them declared without a semicolon."""
    os.makedirs(folder)
    with open(os.path.join(folder, "metadata"), "w", encoding="ascii") as f:
        f.write(NESTED)
    outer = struct.pack("<ibiib", 7, 5, -3, 70, 2)
    with open(os.path.join(folder, "cpu0"), "wb") as f:
        f.write(struct.pack("<Ii", 0xC1FC1FC1, 0))
        for i, (prev, next_) in enumerate(((0, 11), (11, 12), (12, 11), (11, 0))):
            f.write(struct.pack("<Q", 1_000_000 * i) + outer + struct.pack("<16sii", b"task-%d" % prev, prev, 20) + outer +
                    struct.pack("<q16sii", 0, b"task-%d" % next_, next_, 20))


def main():
    if not shutil.which("babeltrace2"):
        skip("no babeltrace2")
    with scratch() as tmp:
        fibonacci, chain, lost = os.path.join(DATA, "fibonacci"), os.path.join(tmp, "chain"), os.path.join(tmp, "lost")
        simulate(chain, "chain", "--duration", "200ms", "--seed", "5", "--no-truth")
        simulate(lost, "random", "--events", "20k", "--seed", "3", "--lost", "0.05", "--no-truth")
        for source in (fibonacci, chain, lost):
            check(compare(source, os.path.basename(source)) == "whole", f"{os.path.basename(source)}: no damage")
        nested = os.path.join(tmp, "nested")
        write_nested(os.path.join(nested, "box"))
        check(len(printed_events(os.path.join(nested, "box"))[0]) == 4, "babeltrace2 reads nested structures")
        check(compare(nested, "nested structures") == "whole", "so does the program")
        seen = {}
        for seed in seeds(6, 20):
            rng = random.Random(seed)
            folder = os.path.join(tmp, "damaged")
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(rng.choice((fibonacci, chain, chain)), folder)
            what = f"{seed}: " + ", ".join(damage(rng, folder) for _ in range(rng.choice((1, 1, 2))))
            outcome = compare(folder, what)
            seen[outcome] = seen.get(outcome, 0) + 1
        print("recordings: " + ", ".join(f"{k}: {n}" for k, n in sorted(seen.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
