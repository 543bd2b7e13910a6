"""Traces as text (ftrace, trace-cmd report, perf script) and copies of tracefs give the answers of the same events in a
trace.dat. Files that are no trace are refused for what they are."""
import os
import random

from e2e import check, run, scratch, table
from ftrace import EVENTS, HEADER_EVENT, HEADER_PAGE, SYSTEM, Buffer, event_format, record, write_dat

NAMES = {0: "swapper", 11: "web server", 12: "a-b:c [7]", 13: "x=1", 14: "kworker/1:1"}
START = 5_000_000_000_000


def schedule(seed):
    """Returns events (ns, CPU, current TID, name, fields) of random switches and wakeups on two CPUs, whole us apart."""
    rng, events, current = random.Random(seed), [], [0, 0]
    ts = START
    for _ in range(3000):
        ts += rng.randrange(2, 400) * 1000
        cpu = rng.randrange(2)
        tid = rng.choice([t for t in (11, 12, 13, 14) if t not in current])
        if rng.random() < 0.4:
            events.append((ts, cpu, current[cpu], "sched_waking", {"comm": NAMES[tid], "pid": tid, "prio": 120, "target_cpu": cpu}))
            continue
        tid = rng.choice([tid, 0])
        if tid == current[cpu]:
            continue
        events.append((ts, cpu, current[cpu], "sched_switch", {
            "prev_comm": NAMES[current[cpu]], "prev_pid": current[cpu], "prev_prio": 120, "prev_state": rng.choice([0, 1, 2]),
            "next_comm": NAMES[tid], "next_pid": tid, "next_prio": 120}))
        current[cpu] = tid
    return events


def state(number):
    return {0: "R", 1: "S", 2: "D"}[number]


def arguments(name, v, plugin):
    if name == "sched_switch" and plugin:
        return (f"{v['prev_comm']}:{v['prev_pid']} [{v['prev_prio']}] {state(v['prev_state'])} ==> "
                f"{v['next_comm']}:{v['next_pid']} [{v['next_prio']}]")
    if name == "sched_switch":
        return (f"prev_comm={v['prev_comm']} prev_pid={v['prev_pid']} prev_prio={v['prev_prio']} "
                f"prev_state={state(v['prev_state'])} ==> next_comm={v['next_comm']} next_pid={v['next_pid']} "
                f"next_prio={v['next_prio']}")
    if plugin:
        return f"{v['comm']}:{v['pid']} [{v['prio']}] CPU:{v['target_cpu']:03}"
    return f"comm={v['comm']} pid={v['pid']} prio={v['prio']} target_cpu={v['target_cpu']:03}"


def text(events, head, line):
    return head + "".join(line(ts, cpu, "<idle>" if tid == 0 else NAMES[tid], tid, name, v) for ts, cpu, tid, name, v in events)


def us(ts):
    return f"{ts // 10**9}.{ts // 1000 % 10**6:06}"


FTRACE = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 3000/3000   #P:2\n#\n"
FORMS = {
    "ftrace": (FTRACE, lambda ts, cpu, comm, tid, name, v: f"{comm:>16}-{tid:<7} [{cpu:03}] d..2. {us(ts)}: {name}: {arguments(name, v, False)}\n"),
    "ftrace with processes": (FTRACE, lambda ts, cpu, comm, tid, name, v:
                              f"{comm:>16}-{tid:<7} (-------) [{cpu:03}] d..2. {us(ts)}: {name}: {arguments(name, v, False)}\n"),
    "trace-cmd report": ("cpus=2\n", lambda ts, cpu, comm, tid, name, v:
                         f"{comm:>16}-{tid:<5} [{cpu:03}] {us(ts)}: {name + ':':<20} {arguments(name, v, True)}\n"),
    "perf script": ("", lambda ts, cpu, comm, tid, name, v:
                    f"{comm:>16} {tid:5} [{cpu:03}] {us(ts)}: {'sched:' + name:>30}: {arguments(name, v, False)}\n"),
    "perf script --ns, process": ("", lambda ts, cpu, comm, tid, name, v:
                                  f"{comm:>16} {tid:5}/{tid:<5} [{cpu:03}] {ts // 10**9}.{ts % 10**9:09}:    1 sched:{name}: "
                                  f"{arguments(name, v, True)}\n"),
}
COLUMNS = ("tid", "name", "ran_ns", "lost_ns", "gaps", "longest_ns")


def answer(path, folder):
    run("index", "--host", path, "-o", f"{folder}/x.steal")
    return sorted(tuple(row[c] for c in COLUMNS) for row in table("threads", f"{folder}/x.steal", "--top", "0"))


def plain_copy(folder, formats, place, buffers, clock=None):
    files = {f"{formats}/header_page": HEADER_PAGE, f"{formats}/header_event": HEADER_EVENT}
    files.update({f"{formats}/{SYSTEM[e]}/{e}/format": event_format(e) for e in EVENTS})
    files.update({place.format(i): data for i, data in enumerate(buffers)})
    if clock:
        files["trace_clock"] = clock.encode()
    for name, data in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)


with scratch() as tmp:
    events = schedule(1)
    cpu = [Buffer(), Buffer()]
    for ts, number, tid, name, v in events:
        cpu[number].add(ts, record(name, tid, **v))
    buffers = [c.bytes() for c in cpu]
    write_dat(f"{tmp}/trace.dat", buffers, names=NAMES)
    expected = answer(f"{tmp}/trace.dat", tmp)
    check(len(expected) == 4 and all(int(row[3]) > 0 for row in expected), f"the reference has threads that lost time: {expected}")

    for form, (head, line) in FORMS.items():
        with open(f"{tmp}/text", "w", encoding="utf-8") as f:
            f.write(text(events, head, line))
        found = answer(f"{tmp}/text", tmp)
        check([row[:2] for row in found] == [row[:2] for row in expected], f"{form}: the same threads {found}")
        check(all(abs(int(a) - int(b)) <= 2 for x, y in zip(found, expected) for a, b in zip(x[2:], y[2:])),
              f"{form}: the same figures")

    # in a page of systrace; below a directory, by its first line
    head, line = FORMS["ftrace"]
    with open(f"{tmp}/systrace.html", "w", encoding="utf-8") as f:
        f.write("<!DOCTYPE html>\n<script>x[0] = 1;</script>\n<pre>\n" + text(events, head, line) + "</pre>\n")
    check([row[:2] for row in answer(f"{tmp}/systrace.html", tmp)] == [row[:2] for row in expected], "a page of systrace")
    os.mkdir(f"{tmp}/folder")
    with open(f"{tmp}/folder/trace", "w", encoding="utf-8") as f:
        f.write(text(events, head, line))
    check([row[:2] for row in answer(f"{tmp}/folder", tmp)] == [row[:2] for row in expected], "a file in a directory")

    # A loss is unknown time; the state before a buffer's start is unknown.
    lines = [line(ts, number, "<idle>" if tid == 0 else NAMES[tid], tid, name, v) for ts, number, tid, name, v in events]
    with open(f"{tmp}/text", "w", encoding="utf-8") as f:
        f.write(head + "".join(lines[:1000]) + "CPU:1 [LOST 77 EVENTS]\n" + "".join(lines[1200:]))
    run("index", "--host", f"{tmp}/text", "-o", f"{tmp}/x.steal")
    info = run("info", f"{tmp}/x.steal", "--format", "json").stdout
    check('"lost": 77' in info or '"lost":77' in info, "the number of lost events is that of the text")

    for formats, place in (("events", "per_cpu/cpu{}/trace_pipe_raw"), ("formats", "traces/cpu{}"), ("events", "cpu{}")):
        folder = f"{tmp}/{place.split('/')[0].strip('{}')}"
        plain_copy(folder, formats, place, buffers, "local [global] boot\n")
        found = answer(folder, tmp)
        check(found == expected, f"a copy of tracefs with {formats}/ and {place}")
    plain_copy(f"{tmp}/tsc", "events", "cpu{}", buffers, "local [x86-tsc]\n")
    p = run("index", "--host", f"{tmp}/tsc", "-o", f"{tmp}/x.steal", status=2)
    check("x86-tsc" in p.stderr, f"a clock that counts cycles is refused: {p.stderr}")

    # refusals
    for name, content, word in (("a.json", b'{"traceEvents": []}', "Chrome"), ("b", b'{"resourceSpans": []}', "spans"),
                                ("c.html", b"<!DOCTYPE html><p>x</p>", "page")):
        with open(f"{tmp}/{name}", "wb") as f:
            f.write(content)
        for command in (("index", "-o", f"{tmp}/x.steal"), ("summary",)):
            p = run(command[0], f"{tmp}/{name}", *command[1:], status=2)
            check(word in p.stderr and "lttng" not in p.stderr, f"{name}: refused for what it is: {p.stderr.strip()}")
