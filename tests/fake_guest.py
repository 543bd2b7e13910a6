"""A guest for `stealscope record VM='cmd:python3 fake_guest.py MODE'`: mode `honest` sends a small recording as the guest's
script does; all others violate the protocol or send absurd values.

FAULTS lists the modes that `record` must refuse; HARMLESS those that it may record."""
import os
import random
import re
import struct
import sys
import time

from ftrace import HEADER_EVENT, HEADER_PAGE, Buffer, event_format, record

READY = "kilobytes 4096 rate 10 page 4096"
EVENTS = ["sched/sched_switch", "sched/sched_waking"]
HUGE = str(2**64 - 1)
PAGES = 5  # of an honest guest


class Guest:
    def __init__(self):
        line = sys.stdin.readline()
        self.key, self.task = re.match(r"key=(\w+) task=(\w+)", line).groups()
        self.out = os.fdopen(1, "wb", 0, closefd=False)
        self.sampled = time.monotonic_ns()  # time of the last clock sample; a recording has no events after the last one

    def send(self, name, body=b"", size=None):
        body = body if isinstance(body, bytes) else body.encode()
        self.out.write(f"{self.key} {name} {len(body) if size is None else size}\n".encode() + body)

    def commands(self):
        for line in sys.stdin:
            if line.strip() in ("go", "stop", "send", "bye"):
                yield line.strip()

    def about(self, clock="mono", events=" ".join(EVENTS), hostname="g"):
        self.send("about", f"osrelease 6.1\nversion v\nhostname {hostname}\nmachine x86_64\nclock {clock}\nevents {events}")

    def set_up(self, ready=READY, headers=True, formats=None, header_page=HEADER_PAGE, **about):
        self.about(**about)
        if headers:
            self.send("header_page", header_page)
            self.send("header_event", HEADER_EVENT)
            self.send("formats", formats or "".join(to_text(event_format(e.split("/")[1])) for e in EVENTS))
        self.send("threads", "1 1 init\n")
        self.send("ready", ready)

    def clock(self, name, text=None):
        self.sampled = time.monotonic_ns()
        self.send(name, text or f"realtime {time.time_ns()}\nnow ts: {self.sampled / 1e9:.6f}\n")

    def finish(self, stats="entries: 1\noverrun: 0\nbytes: 4000\nnow ts: 9\n", cpu="cpu0"):
        self.send(f"stats/{cpu}", stats)
        self.send("saved_cmdlines", "1 init\n")
        self.send("saved_tgids", "1 1\n")
        self.send("threads", "1 1 init\n")
        self.send("end")

    def follow(self, on_go=None, on_stop=None, on_send=None):
        """Acts like an honest guest, except for the given steps."""
        for command in self.commands():
            if command == "go":
                (on_go or (lambda: self.clock("started")))()
            elif command == "stop":
                (on_stop or (lambda: self.clock("stopped")))()
            elif command == "send":
                (on_send or (lambda: (self.send("pages/cpu0", pages(self)), self.finish())))()
            else:
                break


def to_text(text):
    return text if isinstance(text, str) else text.decode()


def pages(guest):
    """Returns PAGES pages with events of the 250 ms before the last clock sample, however late the guest is asked for them."""
    b, t = Buffer(), guest.sampled - 250_000_000
    for _ in range(PAGES * 120):
        b.add(t, record("sched_waking", 7, comm="job", pid=8, target_cpu=0))
        t += 100_000
    data = b.bytes()
    assert len(data) >= PAGES * 4096
    return data[:PAGES * 4096]


def at_setup(**more):
    return lambda g: (g.set_up(**more), g.follow())


def at_start(*frames):
    return lambda g: (g.set_up(), g.follow(on_go=lambda: [g.clock(f) if f.startswith("st") else g.send(f) for f in frames]))


def at_stop(*frames):
    return lambda g: (g.set_up(), g.follow(on_stop=lambda: [g.clock(f) if f.startswith("st") else g.send(f) for f in frames]))


def with_stats(text):
    return lambda g: (g.set_up(), g.follow(on_send=lambda: (g.send("pages/cpu0", pages(g)), g.finish(text))))


def with_clocks(started, stopped, **more):
    return lambda g: (g.set_up(**more), g.follow(on_go=lambda: g.clock("started", started),
                                                 on_stop=lambda: g.clock("stopped", stopped)))


def flood(g, begin=None):
    def send():
        while True:
            g.send("pages/cpu0", b"\0" * 2**20)
    g.set_up()
    g.follow(on_go=lambda: (g.clock("started"), begin and send()), on_send=send)


def flood_headers(g):
    g.set_up()

    def send():
        while True:
            g.out.write(f"{g.key} pages/cpu0 0\n".encode() * 1000)
    g.follow(on_go=lambda: (g.clock("started"), send()))


def send_after_end(g):
    g.set_up()
    g.follow(on_send=lambda: (g.send("pages/cpu0", pages(g)), g.finish(), g.send("pages/cpu1", pages(g)), g.finish()))


def many_cpus(g, stats):
    def send():
        for i in range(4096):
            g.send(f"pages/cpu{i}", b"\0" * 16)
            if i:
                g.send(f"stats/cpu{i}", stats)
        g.finish(stats)
    g.set_up()
    g.follow(on_send=send)


def send_while_tracing(g):
    """An honest guest whose buffers were half full during the recording."""
    g.set_up()
    first, rest = pages(g)[:4096], None

    def go():
        nonlocal rest
        g.clock("started")
        data = pages(g)
        g.send("pages/cpu0", data[:2 * 4096])
        rest = data[2 * 4096:]
    g.follow(on_go=go, on_send=lambda: (g.send("pages/cpu0", rest or first), g.finish()))


def overlapping_program(tables=3000, symbols=8000):
    """Returns a program of 385 KB with 3000 symbol tables, all of which are the same 8000 symbols and program headers."""
    names_at, name = 64, b"\0" + b"a" * 1000 + b"\0"
    symbols_at = 1072
    tables_at = symbols_at + 24 * symbols
    head = b"\x7fELF" + bytes([2, 1, 1, 0]) + bytes(8) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, symbols_at, tables_at, 0, 64, 56,
                                                                    24 * symbols // 56, 64, tables, 1)
    section = struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, symbols_at, 24 * symbols, 1, 0, 8, 24)
    return ((head + name).ljust(symbols_at, b"\0") + struct.pack("<IBBHQQ", 1, 2, 0, 1, 0x40, 64) * symbols + bytes(64) +
            struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, names_at, len(name), 0, 0, 1, 0) + section * (tables - 2))


def send_program(g, data=overlapping_program()):
    """Answers as the script does with --guest-requests, with eight programs."""
    g.send("programs", f"0 {len(data)} /usr/bin/evil\n" * 8)
    for line in sys.stdin:
        word = line.split()
        if len(word) == 4 and word[0] == "read" and word[1].isdigit():
            at, n = int(word[2]) * 4096, int(word[3]) * 4096
            g.send("program", data[at:at + n])
        elif word == ["commit"]:
            g.send("defined", "failed 0")
        elif word == ["requests_end"]:
            break
    g.set_up()
    g.follow()


FAULTS = {
    "end-first": lambda g: (g.about(), g.send("end"), time.sleep(60)),
    "end-at-start": at_start("started", "end"),
    "stop-early": at_start("started", "stopped", "end"),
    "ready-twice": lambda g: (g.set_up(), g.send("ready", READY), g.follow()),
    "ready-first": lambda g: (g.send("ready", READY), g.follow()),
    "ready-later": lambda g: (g.set_up(), g.follow(on_stop=lambda: (g.clock("stopped"), g.send("ready", READY)))),
    "start-twice": at_start("started", "started"),
    "stop-twice": at_stop("stopped", "stopped"),
    "no-headers": at_setup(headers=False),
    "rate": at_setup(ready="kilobytes 4096 rate 999999999999 page 4096"),
    "rate-no-disk": at_setup(ready="kilobytes 4096 rate 4000000 page 4096"),
    "rate-2^64-1": at_setup(ready=f"kilobytes 4096 rate {HUGE} page 4096"),
    "rate-negative": at_setup(ready="kilobytes 4096 rate -1 page 4096"),
    "kilobytes": at_setup(ready=f"kilobytes {HUGE} rate 1 page 4096"),
    "kilobytes-negative": at_setup(ready="kilobytes -1 rate 1 page 4096"),
    "header-page": at_setup(header_page=b"x" * 16000),
    "header-page-sizes": at_setup(header_page=HEADER_PAGE.replace(b"offset:16", b"offset:9999")),
    "page-0": at_setup(ready="kilobytes 4096 rate 1 page 0"),
    "events-twice": at_setup(events="sched/sched_switch " * 3000, formats="name: a\n\n" * 3000),
    "events-other": at_setup(events="x/y"),
    "events-path": at_setup(events="../../etc/x"),
    "clock-other": at_setup(clock="x86-tsc"),
    "clock-backwards": with_clocks("realtime 1795734200352446924\nnow ts: 900.0\n",
                                   "realtime 1795734200352446924\nnow ts: 5.0\n"),
    "lost": with_stats(f"entries: 1\noverrun: {HUGE}\nbytes: 1\n"),
    "lost-sum": with_stats(f"entries: 1\noverrun: 0\ndropped events: {HUGE}\ncommit overrun: 1\nbytes: 1\n"),
    "lost-cpus": lambda g: many_cpus(g, f"entries: {HUGE}\noverrun: {2**48}\ndropped events: {2**48}\n"),
    "programs": lambda g: (g.send("programs", "1 100 /bin/sh\n"), g.set_up(), g.follow()),
    "flood": flood,
    "flood-tracing": lambda g: flood(g, True),
    "flood-headers": flood_headers,
    "flood-setup": lambda g: [g.send("threads", "1 1 x\n" * 100000) for _ in iter(int, 1)],
    "exit": lambda g: (os.write(2, b"\033]52;c;ZXZpbA==\a\033[31mred\xff"), sys.exit(1)),
}

HARMLESS = {
    "end-at-stop": at_stop("stopped", "end"),
    "after-end": send_after_end,
    "end-twice": lambda g: (g.set_up(), g.follow(on_send=lambda: (g.finish(), g.send("end")))),
    "honest": at_setup(),
    "slow": lambda g: (g.set_up(), g.follow(on_send=lambda: (time.sleep(0.4), g.send("pages/cpu0", pages(g)), g.finish()))),
    "while-tracing": send_while_tracing,
    "many-cpus": lambda g: many_cpus(g, "entries: 1\noverrun: 0\n"),
    "entries": with_stats(f"entries: {HUGE}\noverrun: 0\nbytes: {HUGE}\nnow ts: {HUGE}\n"),
    "clock-huge": with_clocks("realtime 99999999999999999999999\nnow ts: 1e308\n", f"realtime {HUGE}\nnow ts: {HUGE}\n"),
    "clock-large": with_clocks("realtime 1795734200352446924\nnow ts: 18446744073.709551\n", None),
    "clock-none": with_clocks("x", "x"),
    "hostname": at_setup(hostname="\033[2J\u202e\n\u0085evil: [a, b]"),
    "hostname-bytes": lambda g: (g.send("about", b"hostname \xff\xfe\xc3\nclock mono\nevents sched/sched_switch"),
                                 g.send("header_page", HEADER_PAGE), g.send("header_event", HEADER_EVENT),
                                 g.send("formats", event_format("sched_switch")), g.send("ready", READY), g.follow()),
    "program": send_program,
    "formats": at_setup(formats="name: sched_switch\nID: 1\nformat:\n\tfield:char a[999999999];\toffset:0;\tsize:999999999;"
                                "\tsigned:0;\n\nprint fmt: \"%s\", ((((REC->a\n\nname: x\n"),
    "page-garbage": lambda g: (g.set_up(), g.follow(on_send=lambda: (g.send("pages/cpu0", random.Random(7).randbytes(4096 * 50)), g.finish()))),
    "threads-many": lambda g: (g.set_up(), g.follow(on_send=lambda: (
        g.send("pages/cpu0", pages(g)), g.send("saved_cmdlines", "".join(f"{i} {'x' * 9}\n" for i in range(800_000))),
        g.send("end")))),
    "threads": lambda g: (g.set_up(), g.follow(on_send=lambda: (
        g.send("pages/cpu0", pages(g)), g.send("stats/cpu0", "entries: 1\n"),
        g.send("saved_cmdlines", b"1 \xff\xfe\x00x\n2 a\n" * 100), g.send("saved_tgids", "2147483647 2147483647\n" * 100),
        g.send("threads", "99999999999999999999 1 x\n-1 -1 y\n"), g.send("end")))),
}

if __name__ == "__main__":
    {**FAULTS, **HARMLESS}[sys.argv[1]](Guest())
