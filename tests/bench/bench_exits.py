#!/usr/bin/env python3
"""Cost of exits and waits for `stealscope index`: instructions, and bytes of the history per interval.

- Instructions are counted by valgrind, so that the figures are free of noise.  Exit reasons: the difference to a run with a
  layout without them, both layouts from files.  Waits: the functions that find the waker and its context.
- Bytes are those of the attributes for exits and waits, divided by all intervals, and by their own intervals.  A change at
  its own time costs log2 of the time between two changes; one at the time of a change of the status, two or three bits.

Traces: the directories given as arguments, or a simulated one (EVENTS=200k)."""
import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(here))
from history_reader import STATE, History  # noqa: E402

build = os.environ.get("builddir", ".")
layouts = os.path.join(here, "../../src/trace/layouts")
EXITS, WAITS = {"Exit", "Preempted At"}, {"Woken By", "Woken In"}


def index(traces, history, layout):
    """Returns the number of instructions of all, and of finding wakers."""
    out = history + ".callgrind"
    p = subprocess.run(["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={out}.%p",
                        f"{build}/stealscope", "index", traces, "-j", "1", "-o", history, "--layout", layout],
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    wakes = 0
    for one in glob.glob(glob.escape(out) + ".*"):  # a child process reads some traces
        listed = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", "--auto=no", one],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
        for n in re.findall(r"(?m)^\s*([\d,]+) .*:(?:thread_write_waker|irq_context) \[", listed):
            wakes += int(n.replace(",", ""))
        os.remove(one)
    return sum(int(n) for n in re.findall(r"Collected : (\d+)", p.stderr)), wakes


def copies(layout, folder):
    """Yields copies of a shipped layout with and without exit reasons."""
    with open(os.path.join(layouts, layout + ".yaml"), encoding="utf-8") as f:
        text = f.read()
    plain, n = re.subn(r"(\{kind: kvm_exit, names: \[[^]]*\])[^}]*\}", r"\1}", text)
    assert n, f"{layout}: no rule for exits"
    for name, content in (("full", text), ("plain", plain)):
        with open(os.path.join(folder, name + ".yaml"), "w", encoding="utf-8") as f:
            f.write(content)
        yield os.path.join(folder, name + ".yaml")


def size_of(h, number):
    a = h.attribute(number)
    row = 16 + (8 * bin(a["mask"]).count("1") if a["type"] == STATE and a["chunks"] > 1 else 0)
    locations = (struct.unpack_from("<Q", h.data, a["index"] + row * k + 8)[0] for k in range(a["chunks"]))
    return 32 + row * a["chunks"] + sum(location >> 48 for location in locations)


def bytes_of(h, names):
    """Returns the numbers of bytes and intervals of the attributes with these names."""
    numbers = [i for i in range(1, h.attributes) if h.string(h.attribute(i)["name"]).decode("latin-1") in names]
    return sum(size_of(h, i) for i in numbers), sum(1 for i in numbers for _ in h.intervals_of(i))


def bench(traces, tmp):
    history = os.path.join(tmp, "all.steal")
    subprocess.run([f"{build}/stealscope", "index", traces, "-o", history], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    h = History(history)
    layout = re.search(rb'"layout": ?"(\w+)"', b"".join(h.meta().values()))
    full, plain = copies(layout[1].decode() if layout else "lttng", tmp)
    everything, wakes = index(traces, history, full)
    rest, _ = index(traces, os.path.join(tmp, "plain.steal"), plain)
    print(traces)
    for name, cost, attributes in (("exits", everything - rest, EXITS), ("waits", wakes, WAITS)):
        size, own = bytes_of(h, attributes)
        print(f"  {name}  {100 * cost / (everything - cost):6.2f} % more instructions  {size / h.intervals:6.3f} B/interval"
              f"  {100 * own / h.intervals:5.1f} % of them, {size / own:.2f} B each")
    print(f"  all    {everything / 1e6:6.1f} M instructions         {len(h.data) / h.intervals:6.3f} B/interval")


if not shutil.which("valgrind") or not shutil.which("callgrind_annotate"):
    print("skipped: valgrind is not installed")
    sys.exit(0)
with tempfile.TemporaryDirectory() as work:
    folders = sys.argv[1:]
    if not folders:
        folders = [os.path.join(work, "traces")]
        subprocess.run([f"{build}/stealscope-sim", "overcommit", "4", "--events", os.environ.get("EVENTS", "200k"),
                        "--no-truth", "-o", folders[0]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    for folder in folders:
        bench(folder, work)
