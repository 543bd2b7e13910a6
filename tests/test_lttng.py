"""Tests with LTTng itself: its session and relay daemons, and a service that marks its requests with LTTng-UST; the marks
alone, and together with the kernel trace of the same machine."""
import os
import re
import shutil
import socket
import subprocess
import sys

from e2e import BUILD, check, finish, free_port, is_root, run, same, scratch, simulate, start, table, traces, until
from relay import Recording, Relay, edited

SERVICE = ("tests/mark_server", "tests/mark_client", "libstealscope-mark.so.1")


class Lttng:
    """Our own relay and session daemons: without root and kernel tracer, with their own ports and directories."""

    def __init__(self, home):
        self.home, self.daemons = home, []
        user = {"user": 65534, "group": 65534, "extra_groups": []} if is_root() else {}
        env = {**os.environ, "LTTNG_HOME": home, "HOME": home, "LD_LIBRARY_PATH": home,
               "STEALSCOPE_MARKER": "/nonexistent"}  # as if the kernel tracer accepted no marks
        self.how = {"env": env, "cwd": home, **user}
        if user:
            os.chown(home, 65534, 65534)
            os.chmod(os.path.dirname(home), 0o755)
        self.control, self.data, self.live = free_port(), free_port(), free_port()

    def __enter__(self):
        self.begin("lttng-relayd", "-o", os.path.join(self.home, "relay"), "-C", f"tcp://127.0.0.1:{self.control}",
                   "-D", f"tcp://127.0.0.1:{self.data}", "-L", f"tcp://127.0.0.1:{self.live}")
        self.begin("lttng-sessiond", "--no-kernel")
        until(lambda: self.run("list").returncode == 0, "lttng-sessiond answers")
        return self

    def __exit__(self, *_):
        for d in reversed(self.daemons):
            d.terminate()
            d.wait(timeout=300)

    def begin(self, *args):
        self.daemons.append(subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.how))

    def run(self, *args):
        return subprocess.run(["lttng", "--no-sessiond", *args], capture_output=True, text=True, timeout=300, **self.how)

    def must(self, *args):
        p = self.run(*args)
        check(p.returncode == 0, f"lttng {' '.join(args)} {p.stderr}")


def serve(lttng, requests):
    """Runs the example service on one CPU.  Returns the ids of its requests."""
    def on_one_cpu():
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    path = os.path.join(lttng.home, "socket")
    for name in SERVICE:  # readable for that user
        shutil.copy(os.path.join(BUILD, name), lttng.home)
    server = subprocess.Popen(["./mark_server", path, str(requests)], preexec_fn=on_one_cpu, **lttng.how)
    subprocess.run(["./mark_client", path, str(requests), "3", "4"], check=True,
                   stdout=subprocess.DEVNULL, timeout=300, **lttng.how)
    check(server.wait(timeout=300) == 0, "the service has served")
    return [str(server.pid << 32 | n) for n in range(1, requests + 1)]


def check_lttng(tmp):
    """Marks of a service reach a history through LTTng-UST and LTTng's relay daemon; then the kernel trace is added."""
    host, home = socket.gethostname(), os.path.join(tmp, "lttng")
    live, disk = os.path.join(tmp, "live.steal"), os.path.join(tmp, "disk.steal")
    os.mkdir(home)
    with Lttng(home) as lttng:
        relay_url = f"net://127.0.0.1:{lttng.live}"
        lttng.must("create", "marks", "--live=100000", f"--set-url=net://127.0.0.1:{lttng.control}:{lttng.data}")
        lttng.must("enable-event", "--userspace", "lttng_ust_tracef:*")
        rows = table("sessions", relay_url)
        check([(r["host"], r["session"], r["timer_ns"]) for r in rows] == [(host, "marks", "100000000")], "it is listed")
        p = start("index", rows[0]["url"], "-o", live)
        until(lambda: table("sessions", relay_url)[0]["viewers"] == "1", "it is read before it records")
        lttng.must("start")
        ids = serve(lttng, 24)
        lttng.must("destroy")
        finish(p, 0)
    folder = os.path.join(home, "relay", host)
    run("index", folder, "-o", disk)
    same(disk, live, "LTTng's relay daemon, and what it wrote")
    check([t["tracer"] for t in traces(live)][0].startswith("lttng-ust 2."), "the tracer is known")
    rows = [r["request"] for r in table("latency", "requests", live)]
    check(rows == ids, "every request is there, also the first, which begins with the trace")
    check_marks_and_kernel(tmp, folder, live, ids)


def check_marks_and_kernel(tmp, folder, live, ids):
    """The documented use: marks of LTTng-UST together with the kernel trace of the same machine.  The kernel trace is
    simulated, and the clock of the marks is shifted into its time."""
    sim, both = os.path.join(tmp, "k"), os.path.join(tmp, "k", "guest-Debian")
    simulate(sim, "fibonacci", "--duration", "1s", "--perfect-clocks")
    kernel = os.path.join(tmp, "kernel.steal")
    run("index", sim, "-o", kernel)
    guest = next(t for t in traces(kernel) if t["role"] == "guest")
    with open(os.path.join(both, "kernel", "metadata"), encoding="utf-8") as f:
        clock = re.search(r'clock \{.*?uuid = "([^"]*)"', f.read(), re.S).group(1)
    shift = guest["begin"] + 200000000 - traces(live)[0]["begin"]
    ust = next(p for p, _, names in os.walk(folder) if "metadata" in names)
    with open(os.path.join(ust, "metadata"), "rb") as f:
        offset = int(re.search(rb"offset = (\d+);", f.read()).group(1))
    to = edited(ust, os.path.join(both, "ust"), (r'hostname = "[^"]*', f'hostname = "{guest["machine"]}'),
                (r'(clock \{[^}]*uuid = ")[^"]*', rf"\g<1>{clock}"), (r"offset = \d+", f"offset = {offset + shift}"))
    shutil.rmtree(os.path.join(to, "index"), ignore_errors=True)
    name, made = guest["machine"], os.path.join(tmp, "marked.steal")
    with Relay(Recording("hypervisor", "kvm", os.path.join(sim, "host", "kernel")),
               Recording(name, "marks", to), Recording(name, "kvm", os.path.join(both, "kernel"))) as r:
        run("index", r.url(), "-o", made)
    rows = table("latency", "requests", made)
    check([r["request"] for r in rows] == ids and {r["machine"] for r in rows} == {name}, f"all requests of {name}")
    running = table("intervals", made, f"/Virtual Machines/{name}/CPUs/CPU0/Current Thread")
    for i in ids:
        for row in table("intervals", made, f"/Requests/{name}/{i}/Thread"):
            at = [r["value"] for r in running if int(r["start"]) <= int(row["start"]) <= int(r["end"])]
            if row["value"] and [row["value"]] != at:
                check(False, f"request {i} is served by {row['value']}, while {at} runs")
    check(True, "each is served by the thread that the kernel's trace has there")


def missing():
    """Returns the missing requirement, or None."""
    with open(os.path.join(BUILD, SERVICE[-1]), "rb") as f:
        if b"lttng_ust_tracef" not in f.read():
            return "the marking library was built without LTTng-UST"
    if not (shutil.which("lttng-relayd") and shutil.which("lttng-sessiond") and shutil.which("lttng")):
        return "LTTng's daemons are not installed"
    if not os.path.exists("/proc/self/fd") or os.stat("/dev/shm").st_mode & 0o1777 != 0o1777:
        return "LTTng-UST needs /proc and /dev/shm"
    return None


if os.geteuid() == 0 and not is_root():
    print("LTTng takes root for the user of the system's daemons, and this user namespace has no other user")
    sys.exit(77)
if missing():
    print(missing())
    sys.exit(77)
with scratch() as scratch_folder:
    check_lttng(scratch_folder)
