"""A recording unmounts the tracefs that it mounted in a guest, and removes its probes there, however it ends, and no others.
Uses real mounts of a tmpfs in its own mount namespace.  PROBES: number of random ends while there are probes; SEED."""
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

from e2e import SOURCE, check, scratch, seeds, skip
from ftrace import HEADER_EVENT, HEADER_PAGE, event_format

STUBS = """root={root}
mkdir() {{ command mkdir "$1" && cp -r "${{1%/*}}/.made/." "$1"; }}
rmdir() {{ [ -d "$1" ] && rm -r "$1"; }}
mount() {{ command mount -t tmpfs "$3" "$4" && cp -r "$root/made/." "$4" && {then}; }}
"""
# Delays the signal that stops the recording until its next nap has just begun, when the child of the nap is youngest.
LATE_STOP = """kill() { if [ "$*" = "-USR1 $$" ]; then : >"$root/stopping"; else command kill "$@"; fi; }
wait() {
	[ ! -e "$root/stopping" ] || command kill -USR1 $$
	command wait "$@"
}
"""
# A kernel with event probes: addresses in /proc/kallsyms, a file that lists the features, and an x86-64 CPU.
WITH_PROBES = """uname() { echo x86_64; }
grep() {
	case $* in
	*kallsyms*) printf '0000000000033080 D steal_time\nffffffff82000000 D __per_cpu_offset\n' ;;
	*README*) return 0 ;;
	*) command grep "$@" ;;
	esac
}
"""
SHELLS = {"sh": ["sh"], "bash": ["bash"], "busybox": ["busybox", "sh"]}
HEAD = "key=K task={task} hold=1 limit={limit} overwrite=0 max_kb=4096 steal=1 root='' clocks=mono events=sched/sched_switch\n"


def write_file(root, name, text, mode=0o644):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    os.chmod(path, mode)


def make_guest(root):
    os.makedirs(os.path.join(root, "sys/kernel/tracing"))
    os.symlink("/proc", os.path.join(root, "proc"))
    write_file(root, "bin/rmdir", '#!/bin/sh\n[ -d "$1" ] && rm -r "$1"\n', 0o755)  # for the watchdog, which is another shell
    for name, text in (("trace_clock", "[local] mono\n"), ("saved_cmdlines", ""), ("events/header_page", HEADER_PAGE),
                       ("events/header_event", HEADER_EVENT),
                       ("events/sched/sched_switch/format", event_format("sched_switch"))):
        write_file(root, "made/" + name, text)
    made = "made/instances/.made/"
    for name in ("trace_clock", "tracing_on", "buffer_size_kb", "trace", "options/overwrite", "options/record-tgid",
                 "events/sched/sched_switch/enable"):
        write_file(root, made + name, "")
    write_file(root, made + "per_cpu/cpu0/stats", "entries: 0\noverrun: 0\nbytes: 0\n")


def mounted(root):
    with open("/proc/mounts", encoding="utf-8") as f:
        return [line.split()[0] for line in f if line.split()[1] == f"{root}/sys/kernel/tracing"]


class Guest:
    """A shell that runs guest.sh."""
    def __init__(self, root, shell, task="trace", then="true", limit=60, stubs=""):
        with open(os.path.join(SOURCE, "src/record/guest.sh"), encoding="utf-8") as f:
            script = f.read()
        self.root = root
        self.process = subprocess.Popen(
            shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}"})
        self.send(HEAD.format(task=task, limit=limit) + STUBS.format(root=root, then=then) + stubs + script)

    def send(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def wait_for(self, frame):
        output = b""
        for line in self.process.stdout:
            if f"K {frame} ".encode() in line:  # a frame begins directly after the previous one
                return
            output += line
        check(False, f"it sends {frame}: {output[-200:]}")

    def end(self):
        """Closes its input.  Returns the rest of its output."""
        self.process.stdin.close()
        output = self.process.stdout.read().decode()
        self.process.wait()
        return output

    def check_unmounted(self, description):
        """Waits for the watchdog to unmount."""
        end = time.time() + 300
        while mounted(self.root) and time.time() < end:
            time.sleep(0.1)
        check(mounted(self.root) == [], f"unmounted: {description}")


def start_recording(root, shell, **more):
    g = Guest(root, shell, **more)
    g.wait_for("ready")
    check(len(mounted(root)) == 1, "mounted")
    g.send("go\n")
    g.wait_for("started")
    return g


def finish_recording(g):
    g.send("stop\n")
    g.wait_for("stopped")
    g.send("send\n")
    g.wait_for("end")


def check_ends(root, shell, name):
    g = Guest(root, shell, "check")
    g.end()
    check(mounted(root) == [], f"{name}: unmounted after a check")
    g = start_recording(root, shell)
    finish_recording(g)
    g.end()
    check(mounted(root) == [], f"{name}: unmounted after a recording")
    for sent in (signal.SIGTERM, signal.SIGHUP):
        g = start_recording(root, shell)
        g.process.send_signal(sent)
        g.process.wait()
        check(mounted(root) == [], f"{name}: unmounted after {sent.name}")
    g = start_recording(root, shell)
    g.end()
    check(mounted(root) == [], f"{name}: unmounted after the end of its input")


def check_kills(root, shell, name):
    if name != "busybox":  # its builtin rmdir takes precedence over the one in bin/
        g = start_recording(root, shell, limit=1)
        g.process.kill()
        g.process.wait()
        g.check_unmounted(f"{name}, after SIGKILL")
    g = Guest(root, shell, then="kill -KILL $$")
    g.process.wait()
    check(len(mounted(root)) == 1, f"{name}: after SIGKILL before the watchdog started it stays mounted")
    output = Guest(root, shell, "clean").end()
    check(mounted(root) == [], f"{name}: the task clean unmounts it")
    check("\nremoved 1\nfailed 0" in output, f"{name}: and reports it {output}")
    output = Guest(root, shell, "clean").end()
    check("\nremoved 0\nfailed 0" in output, f"{name}: a second clean has nothing to do {output}")


def check_stops(root, shell, name):
    """A stop that arrives just as the script begins to wait does not remove the instance before its data are sent."""
    for i in range(4):
        g = start_recording(root, shell, stubs=LATE_STOP)
        finish_recording(g)
        instances = [n for n in os.listdir(f"{root}/sys/kernel/tracing/instances") if n.startswith("stealscope")]
        check(len(instances) == 1, f"{name}: the instance exists after stop {i + 1}")
        g.end()
        os.unlink(f"{root}/stopping")


def check_slow(root, shell, name):
    """A slow watchdog does not unmount the mount of the next recording."""
    if name == "busybox":  # its builtin umount takes precedence over the one in bin/
        return
    write_file(root, "bin/umount", f'#!/bin/sh\n{shutil.which("umount")} "$1" && sleep 2\n', 0o755)
    g = start_recording(root, shell, limit=1)
    g.process.kill()
    g.process.wait()
    g.check_unmounted(f"{name}, after SIGKILL, slowly")
    second = Guest(root, shell, then="sleep 4")
    second.wait_for("ready")
    check(len(mounted(root)) == 1, f"{name}: the next recording stays mounted")
    second.end()
    check(mounted(root) == [], f"{name}: until it ends")
    os.unlink(f"{root}/bin/umount")


def check_others(root, shell, name):
    """Of two recordings, one mounts and unmounts; a mount of the user stays."""
    first = start_recording(root, shell)
    second = Guest(root, shell)
    second.wait_for("ready")
    second.end()
    check(len(mounted(root)) == 1, f"{name}: the first recording still needs it")
    first.end()
    check(mounted(root) == [], f"{name}: the recording that mounted it unmounts it")
    tracefs = f"{root}/sys/kernel/tracing"
    subprocess.run(["mount", "-t", "tmpfs", "tracefs", tracefs], check=True)
    shutil.copytree(f"{root}/made", tracefs, dirs_exist_ok=True)
    start_recording(root, shell).end()
    check(mounted(root) == ["tracefs"], f"{name}: an earlier mount stays")
    subprocess.run(["umount", tracefs], check=True)


class ProbesOfKernel:
    """Does what the kernel does with the lines that are written to dynamic_events: defines and removes probes."""
    def __init__(self, root):
        self.tracefs, self.ended = f"{root}/sys/kernel/tracing", False
        os.mkfifo(self.tracefs + "/dynamic_events")
        self.fd = os.open(self.tracefs + "/dynamic_events", os.O_RDWR | os.O_NONBLOCK)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        rest = b""
        while not self.ended:
            try:
                rest += os.read(self.fd, 65536)
            except BlockingIOError:
                time.sleep(0.002)
            *lines, rest = rest.split(b"\n")
            for line in lines:
                name = line.decode().split()[0][2:]
                if line.startswith(b"-:"):
                    shutil.rmtree(f"{self.tracefs}/events/{name}", ignore_errors=True)
                else:
                    write_file(self.tracefs, f"events/{name}/format", f"name: {name}\n")

    def left(self):
        """Returns the probes and instances of recordings."""
        probes = [f"{g}/{p}" for g in os.listdir(self.tracefs + "/events") if g.startswith("stealscope_")
                  for p in os.listdir(f"{self.tracefs}/events/{g}")]
        return probes + [n for n in os.listdir(self.tracefs + "/instances") if n != ".made"]

    def wait_until_removed(self, description):
        end = time.time() + 60
        while self.left() and time.time() < end:
            time.sleep(0.05)
        check(not self.left(), f"probes and instance are removed: {description} {self.left()}")

    def end(self):
        self.ended = True
        self.thread.join()
        os.close(self.fd)


def end_somehow(guest, how, kernel):
    """Ends a guest's recording as the death of its host does, or as a kill in the guest does."""
    if how == "the host closes the connection":
        guest.process.stdin.close()
    elif how == "the script is killed":
        guest.process.kill()
    elif how == "the script and its watchdog are killed":
        watchdog = [pid for pid in filter(str.isdigit, os.listdir("/proc")) if is_watchdog(pid, guest.root)]
        for pid in watchdog:
            os.kill(int(pid), signal.SIGKILL)
        guest.process.kill()
        guest.process.wait()
        Guest(guest.root, ["sh"], "clean").end()
    kernel.wait_until_removed(how)
    guest.process.stdout.close()  # not read: the output fits into the pipe
    guest.process.wait()


def is_watchdog(pid, root):
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            environ = f.read()
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f"instance={root}/".encode() in environ and b"remove_probes" in f.read()
    except OSError:
        return False


ENDS = ("the host closes the connection", "the script is killed", "the console stays open, and nothing comes",
        "the script and its watchdog are killed")


def check_end_with_probes(tmp, i, delay):
    """A host dies while its guest has probes: nothing of the recording is left in the guest."""
    how, root = ENDS[i % len(ENDS)], os.path.join(tmp, f"probes{i}")
    tracefs = f"{root}/sys/kernel/tracing"
    make_guest(root)
    shutil.copytree(f"{root}/made", tracefs, dirs_exist_ok=True)
    os.makedirs(tracefs + "/per_cpu/cpu0")
    write_file(tracefs, "README", "")
    kernel = ProbesOfKernel(root)
    guest = Guest(root, ["sh"], limit=3 if how.startswith("the console") else 60, stubs=WITH_PROBES)
    while sum("/steal_" in name for name in kernel.left()) < 2:
        time.sleep(0.01)
    if i % 2:
        guest.send("go\n")
    time.sleep(delay)
    print(f"     {delay:.2f} s after its probes were defined: {how}")
    end_somehow(guest, how, kernel)
    kernel.end()
    return True


def check_probes(tmp):
    number = int(os.environ.get("PROBES") or 8)
    print(f"PROBES={number}")
    rng = random.Random(seeds(1, 1)[0])
    delays = [rng.random() * 0.6 for _ in range(number)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda i: check_end_with_probes(tmp, i, delays[i]), range(number)))
    check(all(done), f"{number} guests with probes are clean")


def check_shell(tmp, name):
    root, shell = os.path.join(tmp, name), SHELLS[name]
    if not shutil.which(shell[0]):
        return
    make_guest(root)
    for check_part in (check_ends, check_kills, check_stops, check_slow, check_others):
        check_part(root, shell, name)


def main():
    if sys.argv[1:] != ["in-namespace"]:
        for unshare in (["unshare", "-m"], ["unshare", "-Urm"]):
            if shutil.which("unshare") and subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return subprocess.run([*unshare, sys.executable, __file__, "in-namespace"], check=False).returncode
        skip("unshare is not installed or not permitted")
    with scratch() as tmp:
        if subprocess.run(["mount", "-t", "tmpfs", "x", tmp], check=False).returncode:
            skip("mounting is not permitted")
        with concurrent.futures.ThreadPoolExecutor(len(SHELLS) + 1) as pool:  # they sleep most of the time
            parts = [pool.submit(check_shell, tmp, name) for name in SHELLS] + [pool.submit(check_probes, tmp)]
        for part in parts:
            part.result()
        os.chdir("/")
        subprocess.run(["umount", tmp], check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
