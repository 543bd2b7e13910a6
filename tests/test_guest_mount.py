"""What a recording mounts in a guest that has no tracefs is there no longer once it ends, however it ends; what was mounted
before stays.  Real mounts, of a tmpfs, in a mount namespace of our own."""
import os
import shutil
import signal
import subprocess
import sys
import time

from e2e import SOURCE, check, scratch
from ftrace import HEADER_EVENT, HEADER_PAGE, event_format

STUBS = """root={root}
mkdir() {{ command mkdir "$1" && cp -r "${{1%/*}}/.made/." "$1"; }}
rmdir() {{ [ -d "$1" ] && rm -r "$1"; }}
mount() {{ command mount -t tmpfs "$3" "$4" && cp -r "$root/made/." "$4" && {then}; }}
"""
# Whoever is told to stop learns of it as soon as its next nap has begun, in a child that is no younger at any other time.
AT_ONCE = """kill() { if [ "$*" = "-USR1 $$" ]; then : >"$root/told"; else command kill "$@"; fi; }
wait() {
	[ ! -e "$root/told" ] || command kill -USR1 $$
	command wait "$@"
}
"""
SHELLS = {"sh": ["sh"], "bash": ["bash"], "busybox": ["busybox", "sh"]}
HEAD = "key=K task={task} hold=1 limit={limit} turn=0 ceiling=4096 root='' clocks=mono events=sched/sched_switch\n"


def put(root, name, text, mode=0o644):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    os.chmod(path, mode)


def make_guest(root):
    os.makedirs(os.path.join(root, "sys/kernel/tracing"))
    os.symlink("/proc", os.path.join(root, "proc"))
    put(root, "bin/rmdir", '#!/bin/sh\n[ -d "$1" ] && rm -r "$1"\n', 0o755)  # for the watchdog, which is a shell of its own
    for name, text in (("trace_clock", "[local] mono\n"), ("saved_cmdlines", ""), ("events/header_page", HEADER_PAGE),
                       ("events/header_event", HEADER_EVENT),
                       ("events/sched/sched_switch/format", event_format("sched_switch"))):
        put(root, "made/" + name, text)
    made = "made/instances/.made/"
    for name in ("trace_clock", "tracing_on", "buffer_size_kb", "trace", "options/overwrite", "options/record-tgid",
                 "events/sched/sched_switch/enable"):
        put(root, made + name, "")
    put(root, made + "per_cpu/cpu0/stats", "entries: 0\noverrun: 0\nbytes: 0\n")


def mounted(root):
    with open("/proc/mounts", encoding="utf-8") as f:
        return [line.split()[0] for line in f if line.split()[1] == f"{root}/sys/kernel/tracing"]


class Guest:
    """A shell with the script in it."""
    def __init__(self, root, shell, task="trace", then="true", limit=60, stubs=""):
        with open(os.path.join(SOURCE, "src/record/guest.sh"), encoding="utf-8") as f:
            script = f.read()
        self.root = root
        self.process = subprocess.Popen(
            shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}"})
        self.say(HEAD.format(task=task, limit=limit) + STUBS.format(root=root, then=then) + stubs + script)

    def say(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def hear(self, frame):
        said = b""
        for line in self.process.stdout:
            if f"K {frame} ".encode() in line:  # a frame begins where the one before it ends
                return
            said += line
        check(False, f"it says {frame}: {said[-200:]}")

    def end(self):
        """All that it still says."""
        self.process.stdin.close()
        said = self.process.stdout.read().decode()
        self.process.wait()
        return said

    def gone(self, what):
        """The watchdog may take its time."""
        end = time.time() + 300
        while mounted(self.root) and time.time() < end:
            time.sleep(0.1)
        check(mounted(self.root) == [], f"nothing is mounted any more: {what}")


def started(root, shell, **more):
    g = Guest(root, shell, **more)
    g.hear("ready")
    check(len(mounted(root)) == 1, "it mounts what it needs")
    g.say("go\n")
    g.hear("started")
    return g


def check_ends(root, shell, name):
    g = Guest(root, shell, "check")
    g.end()
    check(mounted(root) == [], f"{name}: it was looked at")
    g = started(root, shell)
    g.say("stop\n")
    g.hear("stopped")
    g.say("send\n")
    g.hear("end")
    g.end()
    check(mounted(root) == [], f"{name}: it was recorded")
    for sent in (signal.SIGTERM, signal.SIGHUP):
        g = started(root, shell)
        g.process.send_signal(sent)
        g.process.wait()
        check(mounted(root) == [], f"{name}: {sent.name} ended it")
    g = started(root, shell)
    g.end()
    check(mounted(root) == [], f"{name}: nobody listens")


def check_kills(root, shell, name):
    if name != "busybox":  # whose own rmdir goes before the one that we put in its place
        g = started(root, shell, limit=1)
        g.process.kill()
        g.process.wait()
        g.gone(f"{name}: it was killed")
    g = Guest(root, shell, then="kill -KILL $$")
    g.process.wait()
    check(len(mounted(root)) == 1, f"{name}: who is killed before a watchdog looks after it leaves it")
    said = Guest(root, shell, "clean").end()
    check(mounted(root) == [], f"{name}: what was left is removed")
    check("\nerased 1\nleft 0" in said, f"{name}: and told {said}")
    said = Guest(root, shell, "clean").end()
    check("\nerased 0\nleft 0" in said, f"{name}: then nothing is left {said}")


def check_stops(root, shell, name):
    """Also when it is told to stop as soon as it begins to wait, what was recorded is there until that was sent, and who mounts
    it next keeps it."""
    for i in range(4):
        g = started(root, shell, stubs=AT_ONCE)
        g.say("stop\n")
        g.hear("stopped")
        g.say("send\n")
        g.hear("end")
        kept = [n for n in os.listdir(f"{root}/sys/kernel/tracing/instances") if n.startswith("stealscope")]
        check(len(kept) == 1, f"{name}: stopped for the {i + 1}. time")
        g.end()
        os.unlink(f"{root}/told")


def check_slow(root, shell, name):
    """What is mounted as soon as something else is not there any more is not taken for that, however slow its end is."""
    if name == "busybox":  # whose own umount goes before the one that we put in its place
        return
    put(root, "bin/umount", f'#!/bin/sh\n{shutil.which("umount")} "$1" && sleep 2\n', 0o755)
    g = started(root, shell, limit=1)
    g.process.kill()
    g.process.wait()
    g.gone(f"{name}: it was killed, and its end is slow")
    second = Guest(root, shell, then="sleep 4")
    second.hear("ready")
    check(len(mounted(root)) == 1, f"{name}: who mounts it next keeps it")
    second.end()
    check(mounted(root) == [], f"{name}: until it is recorded")
    os.unlink(f"{root}/bin/umount")


def check_others(root, shell, name):
    """Of two that record, one mounts; and somebody else's mount is none of ours."""
    first = started(root, shell)
    second = Guest(root, shell)
    second.hear("ready")
    second.end()
    check(len(mounted(root)) == 1, f"{name}: the other one still needs it")
    first.end()
    check(mounted(root) == [], f"{name}: it goes with who mounted it")
    place = f"{root}/sys/kernel/tracing"
    subprocess.run(["mount", "-t", "tmpfs", "tracefs", place], check=True)
    shutil.copytree(f"{root}/made", place, dirs_exist_ok=True)
    started(root, shell).end()
    check(mounted(root) == ["tracefs"], f"{name}: what was mounted before stays")
    subprocess.run(["umount", place], check=True)


def main():
    if sys.argv[1:] != ["apart"]:
        for how in (["unshare", "-m"], ["unshare", "-Urm"]):
            if shutil.which("unshare") and subprocess.run([*how, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return subprocess.run([*how, sys.executable, __file__, "apart"], check=False).returncode
        return 77
    with scratch() as tmp:
        if subprocess.run(["mount", "-t", "tmpfs", "x", tmp], check=False).returncode:
            return 77
        for name, shell in SHELLS.items():
            if not shutil.which(shell[0]):
                continue
            root = os.path.join(tmp, name)
            make_guest(root)
            check_ends(root, shell, name)
            check_kills(root, shell, name)
            check_stops(root, shell, name)
            check_slow(root, shell, name)
            check_others(root, shell, name)
        os.chdir("/")
        subprocess.run(["umount", tmp], check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
