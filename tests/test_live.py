"""Live traces: a relay daemon gives the same history as directories; a relay that ends, dies, hangs or sends garbage.
The relay is our own (relay.py); test_lttng.py uses LTTng's."""
import os
import pty
import random
import re
import shutil
import signal
import struct
import subprocess
import time

import relay
import schema
from e2e import (DATA, PROGRAM, check, document, finish, free_port, run, same, scratch, simulate, start, table, traces, until,
                 until_exit)
from relay import Recording, Relay, edited

HOST = os.path.join(DATA, "fibonacci", "host")
GUEST = os.path.join(DATA, "fibonacci", "guest-Debian")


def recordings():
    return (Recording("hypervisor", "kvm", os.path.join(HOST, "kernel")),
            Recording("debian", "web", os.path.join(GUEST, "kernel")))


# ---- same result as from directories

def check_bundled(tmp):
    """Host and guest, given by options and by a session file, compared with their directories."""
    want, got = os.path.join(tmp, "want.steal"), os.path.join(tmp, "got.steal")
    run("index", "--host", HOST, "--guest", f"Debian={GUEST}", "-o", want)
    host, guest = recordings()
    with Relay(host, guest) as r:
        p = run("index", "--host", r.url(host), "--guest", f"Debian={r.url(guest)}", "-o", got)
        same(want, got, "host and guest")
        check("damaged" not in p.stderr and "stopped" not in p.stderr, "nothing is missing")
    host, guest = recordings()
    with Relay(host, guest) as r:
        session = os.path.join(tmp, "live.yaml")
        with open(session, "w", encoding="utf-8") as f:
            f.write(f"host: {{dir: '{r.url(host)}'}}\nguests:\n  - {{name: Debian, dir: '{r.url(guest)}'}}\n")
        run("index", session, "-o", got)
        same(want, got, "a session file")
    host, guest = recordings()
    with Relay(host, guest) as r:
        rows = table("sync", "--host", r.url(host), "--guest", f"Debian={r.url(guest)}")
        check(len(rows) == 1 and rows == table("sync", want), "sync: the same report")
    return want


def check_whole_relay(tmp):
    """net://RELAY alone: all its machines; several CPUs, many packets, losses."""
    sim, want, got = os.path.join(tmp, "sim"), os.path.join(tmp, "sim.steal"), os.path.join(tmp, "sim2.steal")
    simulate(sim, "critical_task", "--duration", "2s", "--packet", "8192", "--lost", "0.3", "--pcpus", "4")
    # The machines of a relay are sorted by name.
    folders = [os.path.join(sim, name) for name in ("guest-Debian", "guest-Ubuntu", "host")]
    run("index", *folders, "-o", want)
    names = [t["machine"] for t in document(want)["traces"]]
    check(names == sorted(names) and len(names) == 3, f"machines {names}")
    made = [Recording(name, "kvm", os.path.join(folder, "kernel")) for name, folder in zip(names, folders)]
    check(max(len(s.packets) for s in made[2].streams[0]) > 10, "many packets")
    with Relay(*reversed(made)) as r:
        rows = table("sessions", r.url())
        check([row["host"] for row in rows] == names and rows[2]["streams"] == "5", "sessions: lists them")
        check([row["url"] for row in rows] == [r.url(m) for m in made], "with their URLs")
        listed = schema.check_answer(run("sessions", r.url(), "--format", "json").stdout)
        check([row["url"] for row in listed] == [row["url"] for row in rows], "and so does json")
        check("/host/HOST/SESSION" in run("sessions", r.url()).stdout, "and explains how to name one")
        run("index", r.url(), "-o", got)
    check(sum(t["lost"] for t in traces(want)) > 0, "events were lost")
    same(want, got, "a whole relay")


def check_one_machine(tmp):
    """Two traces of a machine, in one session or two, become one trace; traces that cannot be joined are refused."""
    sim, both = os.path.join(tmp, "a"), os.path.join(tmp, "both")
    simulate(sim, "fibonacci", "--duration", "1s")
    simulate(os.path.join(tmp, "b"), "fibonacci", "--duration", "1s", "--seed", "2")
    kernel, other = os.path.join(sim, "guest-Debian", "kernel"), os.path.join(tmp, "b", "guest-Debian", "kernel")
    with open(os.path.join(kernel, "metadata"), encoding="utf-8") as f:
        clock = re.search(r'clock \{.*?uuid = "([^"]*)"', f.read(), re.S).group(1)
    of_clock = (r'(clock \{[^}]*uuid = ")[^"]*', rf"\g<1>{clock}")
    shutil.copytree(kernel, os.path.join(both, "kernel"))
    ust = edited(other, os.path.join(both, "ust"), of_clock, ('domain = "kernel"', 'domain = "ust"'))
    want, got = os.path.join(tmp, "both.steal"), os.path.join(tmp, "both2.steal")
    run("index", both, "-o", want)
    name = document(want)["traces"][0]["machine"]
    with Relay(Recording(name, "all", ust, kernel)) as r:
        run("index", r.url(r.recordings[0]), "-o", got)
        same(want, got, "two domains of one session")
    with Relay(Recording(name, "marks", ust), Recording(name, "kvm", kernel)) as r:
        run("index", f"{r.url()}/host/{name}", "-o", got)
        same(want, got, "two sessions of one machine")
    with Relay(Recording(name, "kvm", kernel), Recording(name, "web", other)) as r:
        err = run("index", r.url(), "-o", got, status=2).stderr
        check("different machines" in err and err.count("\n") == 1, f"two machines of one name: {err.strip()}")
    again = edited(other, os.path.join(tmp, "again"), of_clock)
    with Relay(Recording(name, "kvm", kernel), Recording(name, "more", again)) as r:
        err = run("index", r.url(), "-o", got, status=2).stderr
        check("more than one session records the kernel" in err, f"the kernel twice: {err.strip()}")


def check_ties(tmp):
    """A thread is woken on two CPUs in the same ns: CPU 0 comes first in any order of delivery, as in a directory."""
    sim, made = os.path.join(tmp, "t"), os.path.join(tmp, "ties")
    simulate(sim, "fibonacci", "--duration", "100ms")
    os.mkdir(made)
    shutil.copy(os.path.join(sim, "host", "kernel", "metadata"), made)
    with open(os.path.join(sim, "host", "kernel", "ch_0"), "rb") as f:
        head = f.read(20)
    for cpu in (0, 1):  # sched_wakeup in the layout of stealscope-sim
        body = b"".join(struct.pack("<HQii16s16siii", 1, at, 0, 0, b"swapper", b"woken", tid, 20, cpu)
                        for at, tid in ((2000, 7), (5000, 8 + cpu)))
        bits = 8 * (84 + len(body))
        with open(os.path.join(made, f"ch_{cpu}"), "wb") as f:
            f.write(head + struct.pack("<IQ6QI", 0, cpu, 1000, 9000, bits, bits, 0, 0, cpu) + body)
    want, got = os.path.join(tmp, "ties.steal"), os.path.join(tmp, "ties2.steal")
    run("index", made, "-o", want)
    with Relay(Recording("hypervisor", "kvm", made)) as r:
        run("index", r.url(), "-o", got)
    rows = table("intervals", got, "/Virtual Machines/hypervisor/Threads/7/CPU")
    check(rows[-1]["value"] == "1", "CPU 1 woke it last")
    same(want, got, "events of the same ns")


def check_variant(tmp):
    """A layout names an option of a variant: a relay and the directory give the same threads."""
    sim, layout = os.path.join(tmp, "v"), os.path.join(tmp, "variant.yaml")
    want, got = os.path.join(tmp, "variant.steal"), os.path.join(tmp, "variant2.steal")
    simulate(sim, "fibonacci", "--duration", "100ms")
    number = "integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; }"
    made = edited(os.path.join(sim, "host", "kernel"), os.path.join(tmp, "variant"),
                  (f"{re.escape(number)} _prev_prio;",
                   f'enum : {number} {{ "tid" = -2147483648 ... 2147483647 }} _prev_prio;'),
                  (f"{re.escape(number)} _next_tid;", f"variant <_prev_prio> {{ {number} tid; }} _next_tid;"))
    with open(os.path.join(os.environ.get("srcdir", "."), "src/trace/layouts/lttng.yaml"), encoding="utf-8") as f:
        text, n = re.subn(r"next_tid: next_tid\b", "next_tid: next_tid.tid", f.read())
    check(n == 1, "the layout names the option")
    with open(layout, "w", encoding="utf-8") as f:
        f.write(text)
    run("index", "--host", made, "--layout", layout, "-o", want)
    rows = table("intervals", want, "/Host/CPUs/CPU0/Current Thread")
    check(len({row["value"] for row in rows}) > 2, f"{len(rows)} changes of the current thread")
    with Relay(Recording("hypervisor", "kvm", made)) as r:
        run("index", "--host", r.url(r.recordings[0]), "--layout", layout, "-o", got)
    same(want, got, "a variant")


# ---- a recording in progress

def check_growing(tmp, want):
    """Packets arrive while the reader waits for them; it stops at the end of the recording."""
    got = os.path.join(tmp, "grown.steal")
    sim = os.path.join(tmp, "grows")
    simulate(sim, "fibonacci", "--duration", "1s", "--packet", "4096")
    want = os.path.join(tmp, "grows.steal")
    run("index", sim, "-o", want)
    names = [t["machine"] for t in document(want)["traces"]]
    made = [Recording(name, "s", os.path.join(sim, folder, "kernel")) for name, folder in
            zip(names, ("guest-Debian", "host"))]
    for m in made:
        m.ended, m.released = False, 0
    with Relay(*made) as r:
        p = start("index", r.url(), "-o", got)
        until(lambda: r.asked.count(relay.NEXT_INDEX) > 4, "the session is read before it has any event", p)
        packets = max(len(s.packets) for m in made for s in m.streams[0])
        for released in range(packets // 3, packets + packets // 3, packets // 3):
            asked = len(r.asked)
            for m in made:
                m.released = released
            until(lambda: len(r.asked) > asked + 10, "the reader polls again", p)  # pylint: disable=cell-var-from-loop
        check(p.poll() is None, "waits for more data")
        for m in made:
            m.ended = True
        finish(p, 0)
    same(want, got, "a recording that grew, then ended")


def listens(p):
    """Returns true if SIGINT has a handler and none is pending."""
    with open(f"/proc/{p.pid}/status", encoding="ascii", errors="replace") as f:
        bits = dict(re.findall(r"^(ShdPnd|SigCgt):\t(\w+)", f.read(), re.M))
    return (int(bits["SigCgt"], 16) & ~int(bits["ShdPnd"], 16)) >> signal.SIGINT - 1 & 1


def wait_for_parent(p):
    """Returns when the program, whose children have read everything, has received all data: it sleeps, and needs no CPU."""
    def state():
        with open(f"/proc/{p.pid}/stat", encoding="ascii", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return fields[0], int(fields[11]) + int(fields[12])
    time.sleep(2)
    last = [("R", 0)]

    def rests():
        time.sleep(1)
        last.append(state())
        return last[-1][0] == "S" and last[-1][1] - last[-2][1] <= 1  # 10 ms
    until(rests, "the program has received everything", p)


def check_stopping(tmp, want):
    """Ctrl-C, or --for, stops reading; the history is built from the data received so far.  A second Ctrl-C cancels."""
    got = os.path.join(tmp, "stopped.steal")
    seconds = 0
    for by in ("Ctrl-C", "--for"):
        begin = time.monotonic()
        host, guest = recordings()
        host.ended = guest.ended = False
        with Relay(host, guest) as r:
            p = start("index", "--host", r.url(host), "--guest", f"Debian={r.url(guest)}", "-o", got,
                      *(["--for", f"{max(8, 3 * seconds):.0f}s"] if by == "--for" else []))
            until(lambda: host.is_read() and guest.is_read(), "everything is read", p)  # pylint: disable=cell-var-from-loop
            if by == "Ctrl-C":
                wait_for_parent(p)
                seconds = time.monotonic() - begin  # that this machine needs now
                check(p.poll() is None, "reading continues until the session ends")
                os.killpg(p.pid, signal.SIGINT)
            err = finish(p, 0)
        check("host, Debian (each): reading stopped" in err, f"{by}: a note on both: {err}")
        check([t["events"] for t in traces(got)] == [t["events"] for t in traces(want)], f"{by}: all received events are in the history")
    host, guest = recordings()
    with Relay(host, guest) as r:
        r.hang()
        p = start("index", r.url(host), "-o", os.path.join(tmp, "twice.steal"))
        until(lambda: r.hanging, "the relay hangs", p)
        os.killpg(p.pid, signal.SIGINT)
        until(lambda: listens(p), "the first signal was handled", p)
        os.killpg(p.pid, signal.SIGINT)
        err = finish(p, 130)
        check("interrupted" in err and not [n for n in os.listdir(tmp) if n.startswith("twice")], "twice: nothing is left")


def check_unknown_end(tmp):
    """If a machine sent less than the others, its state after its last event is unknown."""
    sim, got = os.path.join(tmp, "u"), os.path.join(tmp, "u.steal")
    simulate(sim, "fibonacci", "--duration", "1s", "--packet", "4096")
    host = Recording("hypervisor", "kvm", os.path.join(sim, "host", "kernel"))
    guest = Recording("web", "kvm", os.path.join(sim, "guest-Debian", "kernel"))
    host.released, host.ended = max(len(s.packets) for s in host.streams[0]) // 2, False
    with Relay(host, guest) as r:
        p = start("index", r.url(), "-o", got)
        until(lambda: host.is_read() and guest.is_read(), "all available data is read", p)
        wait_for_parent(p)
        os.killpg(p.pid, signal.SIGINT)
        finish(p, 0)
    end = {t["machine"]: t["end"] for t in document(got)["traces"]}["hypervisor"]
    rows = table("intervals", got, "/Virtual Machines/web/CPUs/CPU0/Status")
    known = [row["value"] for row in rows if int(row["end"]) > end]
    check(int(rows[-1]["end"]) - end > 300000000 and known == ["UNKNOWN"], f"behind the end of what came: {known}")


def check_hanging(tmp):
    """--for also ends the reading if the relay stops answering."""
    host, _ = recordings()
    with Relay(host) as r:
        r.hang()
        p = start("index", r.url(host), "-o", os.path.join(tmp, "hung.steal"), "--for", "500ms")
        p.communicate(timeout=300)
        check(r.hanging and p.returncode in (0, 2), "a hanging relay does not hang the reader")


def check_ended(tmp):
    """A terminating signal clears the progress line first."""
    host, _ = recordings()
    for number in (signal.SIGTERM, signal.SIGHUP):
        ours, theirs = pty.openpty()
        with Relay(host) as r:
            r.hang()
            p = subprocess.Popen([PROGRAM, "index", r.url(host), "-o", os.path.join(tmp, "ended.steal")],
                                 stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True)
            output = b""
            while b"reading" not in output:
                output += os.read(ours, 65536)
            p.send_signal(number)
            output += until_exit(p, ours, theirs)
        check(p.wait(timeout=300) == -number and output.endswith(b"\r\x1b[K"), f"{number!r}: {output[-40:]}")


# ---- a relay that fails

def fails(case, message, status, *args):
    p = run("index", *args, "-o", "never.steal", status=status)
    check(message in p.stderr and p.stderr.count("\n") == 1 and not os.path.exists("never.steal"),
          f"{case}: {p.stderr.strip()}")


def check_refusals(tmp):
    unused = f"net://127.0.0.1:{free_port()}"
    fails("no listener", "connection refused (start lttng-relayd there", 2, unused + "/host/a/b")
    fails("no listener, all sessions", f"stealscope: {unused}: connection refused", 2, unused)
    fails("no such host", "net://a..b/host/h/s: unknown host", 2, "net://a..b/host/h/s")
    for url in ("net://", "net://r:x", "net://r:70000", "net://r/x", "net://r/host", "net://r/host/h/s/t", "net://[::1]"):
        fails("not a URL", f"{url}: not the URL of a live session", 2, url)
    check("not the URL of a relay" in run("sessions", "r:5344", status=1).stderr, "sessions: wants a URL")
    check("--for: not a duration" in run("index", "net://r/host/h/s", "--for", "soon", status=1).stderr, "--for soon")
    host, guest = recordings()
    with Relay(host, guest) as r:
        fails("no such session", "no such session (sessions: hypervisor/kvm, debian/web)", 2, r.url(host) + "x")
        fails("no such machine", "no session of this host", 2, r.url() + "/host/hv02")
        host.viewers = 1
        fails("read by another", "another viewer reads this session", 2, r.url(host))
        check(table("sessions", r.url())[1]["viewers"] == "1", "sessions lists the other viewer")
    host, guest = recordings()
    host.timer = 0
    old = Recording("debian", "old", os.path.join(HOST, "kernel"))
    old.timer = 0
    with Relay(old, guest) as r:
        run("index", r.url() + "/host/debian", "-o", os.path.join(tmp, "live.steal"))
        guest.rewind()
    with Relay(host, guest) as r:
        fails("not live", "not a live session (record with lttng create --live", 2, r.url(host))
        run("index", r.url(), "-o", os.path.join(tmp, "live.steal"))
        check([t["machine"] for t in traces(os.path.join(tmp, "live.steal"))] == ["debian"], "only what is live is found")
    guest = Recording("debian", "web.yaml", os.path.join(GUEST, "kernel"))
    with Relay(guest) as r:
        run("index", r.url(guest), "-o", os.path.join(tmp, "yaml.steal"))
    with Relay() as r:
        fails("an empty relay", "no live session (on each machine: lttng create --live", 2, r.url())
        fails("an empty relay, by name", "the relay daemon has no sessions", 2, r.url() + "/host/h/s")


def check_dying(tmp):
    """Data received before the relay died is kept; without any data it is an error."""
    got = os.path.join(tmp, "died.steal")
    sim = os.path.join(tmp, "dies")
    simulate(sim, "fibonacci", "--duration", "1s", "--packet", "4096")
    name, events = None, []
    for after in (40, 80):
        made = Recording("hypervisor", "kvm", os.path.join(sim, "host", "kernel"))
        with Relay(made) as r:
            r.fault = lambda command, count, answer: answer() if count < after else None
            name = r.url(made)
            err = run("index", name, "-o", got).stderr
        check(f"{name}: the relay daemon closed the connection; later events are missing" in err, "the note names the reason")
        events.append(traces(got)[0]["events"])
    check(0 < events[0] < events[1], f"what came before is kept: {events} events")
    host, guest = recordings()
    guest.released, guest.ended = 0, False
    with Relay(host) as r, Relay(guest) as other:
        p = start("index", "--host", r.url(host), "--guest", f"Debian={other.url(guest)}", "-o", got)
        until(lambda: other.asked.count(relay.NEXT_INDEX) > 2, "both are read", p)
        other.fault = lambda command, count, answer: None
        err = finish(p, 0)
    check(traces(got)[0]["events"] == 18213 and f"Debian: {other.url(guest)}: the relay daemon closed" in err,
          "a machine whose relay dies costs the others nothing")
    guest.rewind()
    with Relay(guest) as other:
        p = start("index", other.url(guest), "-o", os.path.join(tmp, "nothing.steal"))
        until(lambda: other.asked.count(relay.NEXT_INDEX) > 2, "it is read", p)
        other.fault = lambda command, count, answer: None
        check("the relay daemon closed the connection" in finish(p, 2), "no data at all: the error names the reason")
    host, _ = recordings()
    with Relay(host) as r:
        r.fault = lambda command, count, answer: None
        fails("a relay that hangs up", "the relay daemon closed the connection", 2, r.url(host))
        r.fault = lambda command, count, answer: struct.pack(">QIII", 1, 3, 0, 1)
        fails("another protocol", "not a relay daemon", 2, r.url(host))
        r.fault = lambda command, count, answer: b"HTTP/1.1 400 Bad Request\r\n\r\n"
        fails("another service", "not a relay daemon", 2, r.url(host))


def check_killed(tmp):
    """If the decoder process of a machine dies, its data is kept, and its CPUs are unknown afterwards."""
    got = os.path.join(tmp, "killed.steal")
    host, guest = recordings()
    host.ended = guest.ended = False
    guest.released = 0
    with Relay(host, guest) as r:
        p = start("index", "--host", r.url(host), "--guest", f"Debian={r.url(guest)}", "-o", got)
        until(lambda: host.is_read() and guest.is_read(), "both are read", p)
        children = subprocess.run(["pgrep", "-P", str(p.pid)], capture_output=True, text=True, check=True).stdout.split()
        check(len(children) == 2, "a process for each machine")
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        err = finish(p, 0)
    check(err.count("libbabeltrace2 crashed on data of the relay daemon; later events are missing") == 2 and
          "Debian: the trace in" in err, "a note on both")
    check(traces(got)[0]["events"] == 18213, "all received events are kept")
    last = [table("intervals", got, f"/Host/CPUs/CPU{cpu}/Current Thread")[-1] for cpu in (0, 1)]
    check(all(row["value"] == "" for row in last) and last[0]["start"] != last[1]["start"], "each CPU to its last event")


def check_garbage(tmp):
    """With any garbage, reading ends with one error or with the data received before."""
    rng = random.Random(7)
    commands = (relay.LIST, relay.ATTACH, relay.NEXT_INDEX, relay.GET_PACKET, relay.GET_METADATA, relay.NEW_STREAMS)
    cases = [(c, kind) for c in commands for kind in ("noise", "bits", "bits")] + [(relay.GET_PACKET, "short")]
    for command, kind in cases:
        host, _ = recordings()

        def spoil(asked, _count, answer, command=command, kind=kind):
            data = bytearray(answer())
            if asked != command or rng.random() < 0.3:
                return bytes(data)
            if kind == "noise":
                return rng.randbytes(len(data))
            if kind == "short":
                return bytes(data[:len(data) // 2])
            for _ in range(4):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            return bytes(data)
        with Relay(host) as r:
            r.fault = spoil
            p = run("index", r.url(host), "-o", os.path.join(tmp, "garbage.steal"), "--for", "100ms", status=None)
        lines = [n for n in p.stderr.splitlines() if not n.startswith("stealscope: note: ")]
        check((p.returncode, len(lines)) in ((0, 0), (2, 1)), f"{kind} for command {command}: {p.returncode} {lines}")


# ---- location of the history

def check_cache(tmp):
    """Without -o the history is in the user's cache and is rebuilt each time; its clocks cannot be changed."""
    env = {"XDG_CACHE_HOME": os.path.join(tmp, "cache")}
    host, guest = recordings()
    screen, script = os.path.join(tmp, "screen"), os.path.join(tmp, "script")
    with open(script, "w", encoding="utf-8") as f:
        f.write(f":screen {screen}!\n:offset Debian +3us\n")
    with Relay(host, guest) as r:
        what = ("--host", r.url(host), "--guest", f"Debian={r.url(guest)}")
        made = run("index", *what, env=env).stdout.strip()
        check(made.startswith(env["XDG_CACHE_HOME"]) and os.path.exists(made), "index: in the cache")
        host.rewind()
        guest.rewind()
        asked = len(r.asked)
        p = run("view", *what, "--script", script, "--size", "80x24", env=env, status=2)
        check("live sessions are always read again" in p.stderr and len(r.asked) > asked + 5, "view: reads it anew")
        check("live traces" in p.stderr, "view: a nudge is refused")
    with open(screen, encoding="utf-8") as f:
        check("CPU1" in f.read(), "view: shows it")


with scratch() as scratch_folder:
    bundled = check_bundled(scratch_folder)
    check_whole_relay(scratch_folder)
    check_one_machine(scratch_folder)
    check_ties(scratch_folder)
    check_variant(scratch_folder)
    check_growing(scratch_folder, bundled)
    check_stopping(scratch_folder, bundled)
    check_unknown_end(scratch_folder)
    check_hanging(scratch_folder)
    check_ended(scratch_folder)
    check_refusals(scratch_folder)
    check_dying(scratch_folder)
    check_killed(scratch_folder)
    check_garbage(scratch_folder)
    check_cache(scratch_folder)
