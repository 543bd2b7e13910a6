"""Answers of a terminal: a light background chooses the light theme, no answer becomes a key or input of the shell, and a
terminal with direct colour gets the palette's colours as RGB."""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import termios
import time

from e2e import DATA, PROGRAM, check, run, scratch, waited

QUESTION = b"\x1b]11;?\x1b\\\x1b[c"
FRAME = rb"most delayed.*help"  # first and last part of the overview
TYPE = b"\x1b[?64;1;2;6;9;15;16;17;18;21;22;28c"


class Terminal:
    """The program on a terminal that answers with the given bytes."""

    def __init__(self, *args, **env):
        self.out, self.at = b"", 0  # at: end of what read() has found
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **env})
            for name in {"NO_COLOR", "COLORTERM"} - set(env):
                os.environ.pop(name, None)
            os.execv(PROGRAM, [PROGRAM, *args])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

    def read(self, pattern, seconds=120):
        """Reads until the output after what the last call found contains the pattern; returns that output. None at the
        timeout; the next call searches later output then."""
        end, begin = time.monotonic() + seconds, self.at
        while not (found := re.search(pattern, self.out[begin:], re.S)):
            data = b""
            if select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    pass
            if not data:
                self.at = len(self.out)
                return None
            self.out += data
        self.at = begin + found.end()
        return self.out[begin:]

    def write(self, data):
        os.write(self.fd, data)

    def quit(self, keys=b"Q"):
        self.write(keys)
        if self.read(rb"\x1b\[\?1049l") is None:
            os.kill(self.pid, signal.SIGKILL)
        self.read(rb"(?!)", 0.2)
        return os.waitpid(self.pid, 0)[1]


def colours(out):
    return set(re.findall(rb"[34]8;5;\d+", out))


def opened(recording, answer, *args, **env):
    t = Terminal("view", recording, "--fresh", *args, **env)
    check(t.read(re.escape(QUESTION)) is not None, "the viewer asks for the background")
    t.write(answer)
    t.read(FRAME)
    frames = [b""]
    while len(frames) < 3 or frames[-1] != frames[-2]:  # until nothing changes
        t.read(rb"(?!)", 0.4)
        t.write(b"\x0c")   # all cells again
        out = t.read(FRAME)
        check(out is not None, "it draws a frame")
        frames.append(out[:out.rindex(b"help")])
    return t, out


def check_themes(recording):
    seen = {}
    for name, answer in (("light", b"\x1b]11;rgb:ffff/fefe/f0f0\x1b\\"), ("short", b"\x1b]11;rgb:f/f/f\x07"),
                         ("rgba", b"\x1b]11;rgba:ffff/ffff/ffff/8000\x07"), ("dark", b"\x1b]11;rgb:0000/1111/2222\x1b\\"),
                         ("none", b"")):
        t, out = opened(recording, answer + TYPE)
        seen[name] = colours(out)
        check(t.quit() == 0, f"{name}: the viewer ends")
        check(t.out.endswith(b"\x1b[?1l\x1b>"), f"{name}: the terminal is restored")
    named = {}
    for theme in ("cvd-light", "cvd-dark"):
        t, out = opened(recording, b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\" + TYPE, "--theme", theme)
        named[theme] = colours(out)
        t.quit()
    check(named["cvd-light"] != named["cvd-dark"], "the themes differ")
    check(seen["light"] == seen["short"] == seen["rgba"] == named["cvd-light"], "a light background: the light theme")
    check(seen["dark"] == seen["none"] == named["cvd-dark"], "a dark one or none, or a named theme: as before")


def check_hostile(recording):
    """No answer becomes keys: the viewer stays where it is, and quits with its key."""
    for answer in (b"\x1b]11;" + b"Q" * 30 + b"\x07", b"\x1b]11;rgb:zz/Q/q\x1b\\", b"\x1b]11;rgb:ffff/ffff\x07",
                   b"\x1b]52;c;UQ==\x07", b"\x1b]11;rgb:fffff/fffff/fffff\x07", b"\x1b]\x07", b"\x1b]11;rgb://\x1b\\",
                   b"\x1b]11;rgb:-1/-1/-1\x07", b"\x1b]11;rgb:0x1/0x1/0x1\x07"):
        t, out = opened(recording, answer + TYPE)
        check(out is not None, f"{answer}: the overview is still there")
        t.read(rb"(?!)", 0.2)
        t.write(b"\x1b]")  # Alt-] is a key again
        t.write(b"?")
        check(t.read(rb"(?i)help|keys") is not None, f"{answer}: keys work")
        check(t.quit(b"qQ") == 0, f"{answer}: the viewer ends")
    t = Terminal("view", recording, "--fresh")
    t.read(re.escape(QUESTION))
    t.write(b"\x1b]11;rgb:" + b"j" * 100)
    t.read(FRAME)
    check(t.quit() == 0, "an answer without an end swallows a bounded number of keys")


def check_late(recording):
    """An answer that is still missing at the end is awaited, for a moment."""
    for answer in (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\" + TYPE, b""):
        t, _ = opened(recording, b"")
        begun = time.monotonic() - waited(t.pid)
        t.write(b"Q")
        time.sleep(0.05)
        t.write(answer)
        check(t.read(rb"\x1b\[\?1049l") is not None and time.monotonic() - waited(t.pid) - begun < 10, "the viewer ends")
        left = fcntl.ioctl(t.fd, termios.FIONREAD, b"\0" * 4)
        check(left == b"\0" * 4, "and leaves no answer behind")
        os.waitpid(t.pid, 0)


def check_silent(recording):
    for env in ({"TERM": "linux"}, {"TERM": "vt100"}):
        t = Terminal("view", recording, "--fresh", **env)
        t.read(rb"most delayed")
        check(b"]11" not in t.out, f"{env}: the viewer does not ask")
        os.kill(t.pid, signal.SIGKILL)
        os.waitpid(t.pid, 0)


def check_direct(recording):
    if not any(os.path.exists(f"{d}/x/xterm-direct") for d in ("/usr/share/terminfo", "/lib/terminfo", "/etc/terminfo")):
        print("skip direct colour: no description xterm-direct here (ncurses-term)")
        return
    for env in ({"COLORTERM": "truecolor"}, {"TERM": "xterm-direct"}):
        t, out = opened(recording, TYPE, **env)
        rgb = set(re.findall(rb"[34]8:2::(\d+:\d+:\d+)", out))
        check(b"255:175:0" in rgb and not colours(out), f"{env}: colour 214 is #ffaf00")
        t.quit()
    t, out = opened(recording, TYPE, COLORTERM="truecolor", NO_COLOR="1")
    check(b":2::" not in out, "NO_COLOR: none")
    t.quit()


with scratch() as tmp:
    shutil.copytree(f"{DATA}/fibonacci", f"{tmp}/fib")
    run("summary", f"{tmp}/fib")
    check_themes(f"{tmp}/fib")
    check_hostile(f"{tmp}/fib")
    check_late(f"{tmp}/fib")
    check_silent(f"{tmp}/fib")
    check_direct(f"{tmp}/fib")
