"""srbn_read() in a running service, on the real kernel: its values against a recording of the same requests; what a process
can do with a published page; limits of the publisher."""
import array
import ctypes
import glob
import mmap
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

from e2e import BUILD, PROGRAM, check, free_port, is_sanitized, run, scratch, skip, table, until, waited
from live_scene import Recording, steal_of

LIBRARY = os.path.join(BUILD, "libstealscope-mark.so.1")
REQUESTS = 25
PARTIAL = 8  # SRBN_PARTIAL

# A service: argv: library, socket, number of requests. Prints a line per request.
SERVICE = r"""
import ctypes, sys, time
class Data(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in "latency executing low high throttled wait blocked unknown predicted p_low p_high "
                "resolution".split()] + [("source", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("culprit", ctypes.c_char * 128)]
srbn = ctypes.CDLL(sys.argv[1])
srbn.srbn_start.restype = ctypes.c_uint64
for f in (srbn.srbn_yield, srbn.srbn_resume, srbn.srbn_end):
    f.argtypes = [ctypes.c_uint64]
srbn.srbn_read.argtypes = [ctypes.c_uint64, ctypes.POINTER(Data)]
def burn(s):
    end = time.perf_counter() + s
    while time.perf_counter() < end:
        pass
path = sys.argv[2].encode()
for _ in range(10):  # the monitor may need more than 1 s on a busy machine
    source = srbn.srbn_live(path)
    if source != 4:
        break
print(source, flush=True)
sys.stdin.readline()
d = Data()
for i in range(int(sys.argv[3])):
    r = srbn.srbn_start()
    burn(0.006)
    srbn.srbn_yield(r)
    time.sleep(0.002)
    burn(0.003)
    srbn.srbn_resume(r)
    burn(0.006)
    srbn.srbn_end(r)
    if srbn.srbn_read(r, d):
        sys.exit("srbn_read fails")
    print(r, d.latency, d.low, d.high, d.wait, d.source, d.flags, d.blocked, d.throttled, flush=True)
"""
HOG = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True:\n    pass\n"
children = []


def start(*args, **more):
    p = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)
    children.append(p)
    return p


def start_monitor(path, *more):
    """Returns the monitor when it publishes; None with its message if it cannot."""
    port = free_port()
    p = subprocess.Popen([PROGRAM, "monitor", "-l", f"127.0.0.1:{port}", "--publish", path, *more], stderr=subprocess.PIPE, text=True)
    children.append(p)
    p.port = port
    for _ in range(1200):
        if p.poll() is not None:
            return None, p.stderr.read()
        if os.path.exists(path):
            return p, ""
        time.sleep(0.1)
    check(False, "the monitor publishes")
    return None, ""


def on_cpu(cpu):
    return lambda: os.sched_setaffinity(0, {cpu})


def instance_of(recorder):
    """Returns the tracefs instance of a recorder that records; None if it has ended."""
    while recorder.poll() is None:
        for path in glob.glob(f"/sys/kernel/tracing/instances/stealscope-{recorder.pid}-*"):
            with open(os.path.join(path, "tracing_on"), encoding="utf-8") as f:
                if f.read().strip() == "1":
                    return path
        time.sleep(0.1)
    return None


def serve(path, cpu, requests, marker, *prefix, source="1"):
    """Runs the service. Returns {id: values}."""
    p = start(*prefix, sys.executable, "-c", SERVICE, LIBRARY, path, str(requests), preexec_fn=on_cpu(cpu),
              env={**os.environ, "STEALSCOPE_MARKER": marker})
    found = p.stdout.readline().strip()
    check(found == source, f"the source is {source}: {found}")
    p.stdin.write("go\n")
    p.stdin.flush()
    rows = [list(map(int, line.split())) for line in p.stdout]
    check(p.wait(timeout=300) == 0 and len(rows) == requests, "each request is read")
    return {r[0]: dict(zip(("latency", "low", "high", "wait", "source", "flags", "blocked", "throttled"), r[1:])) for r in rows}


def check_values(tmp, path):
    cpu = max(os.sched_getaffinity(0))
    hog = start(sys.executable, "-c", HOG, str(cpu))
    trace = os.path.join(tmp, "recording")
    recording = Recording(trace)  # it clears its buffers before it begins
    recorder = recording.process
    children.append(recorder)
    instance = instance_of(recorder)
    live = serve(path, cpu, REQUESTS, os.path.join(instance, "trace_marker") if instance else "/nonexistent")
    if instance:
        recording.stop()
    hog.kill()
    # Some kernels do not report the switches of some tasks: such a request has unknown time.
    check(all(d["source"] == 1 and not d["flags"] & ~(2 | PARTIAL) for d in live.values()), "the page is the source of all requests")
    whole = [d for d in live.values() if not d["flags"] & PARTIAL]
    check(len(whole) > 0.4 * REQUESTS, f"{len(whole)} of {REQUESTS} requests are known completely")
    check(all(0 <= d["low"] <= d["high"] <= d["latency"] for d in live.values()), "the bounds are in order")
    check(sum(d["low"] for d in live.values()) > 0.2 * sum(d["latency"] for d in live.values()), "the hog's time is stolen")
    check(sum(d["blocked"] for d in whole) >= 1e6 * len(whole), "the sleep is counted")
    check(sum(d["wait"] for d in live.values()) < 1e6, "the process did not wait for threads of its own")
    if not instance or recorder.returncode != 0:
        print("     record does not run here: not compared with a recording")
        return
    folder = os.path.join(trace, "host", "events", "ftrace", "print")  # the marks were written into the recorder's buffer
    os.makedirs(folder, exist_ok=True)
    with open("/sys/kernel/tracing/events/ftrace/print/format", encoding="utf-8") as f, \
            open(os.path.join(folder, "format"), "w", encoding="utf-8") as to:
        to.write(f.read())
    compared, worst = 0, 0
    for row in table("latency", "requests", trace, "--features"):
        d = live.get(int(row["request"]))
        if d is None or int(row["unknown"]):
            continue
        latency = int(row["latency_ns"])
        allowed = max(1e6, 0.02 * latency) + abs(d["latency"] - latency)  # the thread may lose the CPU between counter and mark
        if d["flags"] & PARTIAL:
            if d["high"] < int(row["provider_low_ns"]) - allowed or d["low"] > int(row["provider_high_ns"]) + allowed:
                check(False, f"the bounds of a request that is known in part contain those of the recording: {d} {row}")
            continue
        compared += 1
        for ours, theirs in (("low", "provider_low_ns"), ("high", "provider_high_ns"), ("wait", "wait"), ("blocked", "blocked")):
            difference = abs(d[ours] - int(row[theirs]))
            worst = max(worst, difference)
            if difference > allowed:
                check(False, f"{ours} of a request is that of the recording: {d[ours]} ns, {row[theirs]} ns")
    print(f"ok   {compared} requests have the values of the recording, largest difference {worst / 1e6:.3f} ms")
    if compared < REQUESTS // 2:
        print("     the recording lacks events in the other requests: they are not compared")


def check_container(path):
    """A service in a PID namespace of its own: a task of the same namespace is its own work."""
    if subprocess.run(["unshare", "-pf", "true"], check=False, capture_output=True).returncode:
        print("     unshare -p does not work here: containers are not checked")
        return
    cpu = max(os.sched_getaffinity(0))
    live = serve(path, cpu, 24, "/nonexistent", "unshare", "-pf", "sh", "-c",
                 '(while :; do :; done) & "$0" "$@"; rc=$?; kill $!; exit $rc')
    wait, stolen = (sum(d[k] for d in live.values()) for k in ("wait", "high"))
    check(wait > 8 * 2e6, f"a neighbour in the container: {wait / 1e6:.1f} ms wait, {stolen / 1e6:.1f} ms stolen")


def check_guest(path):
    """In a VM with a steal clock: only the time that the host took is the provider's."""
    monitor, why = start_monitor(path, "--own", "machine")
    if not monitor:
        check("steal clock" in why, f"without a steal clock: {why.strip()}")
        return
    cpu = max(os.sched_getaffinity(0))
    hog = start(sys.executable, "-c", HOG, str(cpu))
    before = steal_of(cpu)
    live = serve(path, cpu, 15, "/nonexistent", source="2")
    stolen = steal_of(cpu) - before
    hog.kill()
    whole = [d for d in live.values() if not d["flags"] & PARTIAL]
    check(len(whole) > 5 and not any(d["flags"] & 2 for d in whole), f"{len(whole)} of 15 requests are known, with the host's part")
    low, high, wait = (sum(d[k] for d in whole) for k in ("low", "high", "wait"))
    check(low <= stolen + 2e7, f"at least {low / 1e6:.3f} ms were stolen, {stolen / 1e6:.0f} by /proc/stat")
    check(wait > 0.2 * sum(d["latency"] for d in whole), "the hog's time is runqueue wait")
    check(high < wait, f"at most {high / 1e6:.3f} ms were stolen")
    monitor.terminate()
    check(monitor.wait(timeout=300) == 0, "the monitor ends")


VCPU = """
import ctypes, os, sys, threading
ctypes.CDLL(None).prctl(15, b"CPU %d/KVM" % int(sys.argv[2]), 0, 0, 0)
os.sched_setaffinity(0, {int(sys.argv[1])})
print(os.getpid(), flush=True)
while True:
    pass
"""


def shared_entry(path, offset=0):
    """Returns (seq, tid or 0, counters or name) of vCPU 3."""
    with open(path, "rb") as f:
        f.seek(offset + 4 * 128)
        return f.read(128)


def check_share(tmp):
    """The counters of a vCPU in a file in place of a memory device: they follow the thread's run delay; who took it."""
    cpu, path = max(os.sched_getaffinity(0)), os.path.join(tmp, "memory")
    victim, hog = start(sys.executable, "-c", VCPU, str(cpu), "3"), start(sys.executable, "-c", HOG, str(cpu))
    other = start(sys.executable, "-c", VCPU, str(cpu), "5")  # another VM
    pid = int(victim.stdout.readline())
    with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
        name = f"{f.read().strip()}-{pid}"
    monitor, why = start_monitor(os.path.join(tmp, "socket2"), "--own", "process", "--share", f"{name}={path}", "--pid", str(pid),
                                 "--pid", other.stdout.readline().strip(), "-d", "1")
    check(monitor is not None, f"the monitor shares {why}")
    for _ in range(600):
        time.sleep(0.1)
        culprit = shared_entry(path, 256 * 128)
        if os.path.getsize(path) == 2 * 256 * 128 and culprit.strip(b"\0"):
            break

    def run_delay():
        with open(f"/proc/{pid}/schedstat", encoding="utf-8") as f:
            return int(f.read().split()[1])

    def read():
        before = run_delay()
        while run_delay() == before:  # schedstat counts a wait when it has ended: now one has
            time.sleep(0.001)
        for _ in range(1000):
            delay = run_delay()
            e = struct.unpack_from("IIIIQ8Q", shared_entry(path))
            if e[0] and not e[0] % 2:
                return delay, e, time.clock_gettime_ns(time.CLOCK_MONOTONIC) - e[4]
        check(False, "the entry can be read")
        return 0, (), 0

    before, first, lag = read()
    time.sleep(1.5)
    after, second, more_lag = read()
    check(first[1] == 4 and second[4] > first[4], "the entry of vCPU 3 is updated")
    check(abs(second[5] - first[5] - (after - before)) < lag + more_lag + 3e8 and second[5] - first[5] <= second[4] - first[4], f"its stolen time grows by the run delay: "
          f"{(second[5] - first[5]) / 1e6:.1f} of {(after - before) / 1e6:.1f} ms")
    took, text = struct.unpack_from("II Q112s", culprit)[2:]
    check(took > 0 and text.split(b"\0")[0], f"the culprit is named: {text.split(bytes(1))[0].decode()}")
    with open(path, "rb") as f:
        memory = f.read()
    used = {i for i in range(1, 512) if i != 256 and memory[128 * i:128 * i + 128].strip(b"\0")}
    check(used == {4, 256 + 4}, f"the memory contains vCPU 3 of this VM and its culprit, and nothing of the other VM: {used}")
    other.kill()
    monitor.terminate()
    check(monitor.wait(timeout=300) == 0, "the monitor ends")
    with open(path, "rb") as f:
        header = struct.unpack_from("IIIIII", f.read(128))
    check(header[2] == 3 and header[4] == 1, "the memory is closed")
    victim.kill()
    hog.kill()
    check(run("monitor", "-l", "127.0.0.1:0", "--share", "web", status=1).stderr.count("\n") == 1, "a file is necessary")
    os.chmod(path, 0o644)
    check("every user" in run("monitor", "-l", "127.0.0.1:0", "--share", f"web={path}", status=2).stderr, "not for every user")
    check("not a file" in run("monitor", "-l", "127.0.0.1:0", "--share", "web=/dev/null", status=2).stderr, "no device")


# ---- what a process can do with its page

def connect(path):
    """Returns (connection, descriptor of the page)."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(60)
    s.connect(path)
    data, control, *_ = s.recvmsg(16, socket.CMSG_SPACE(4))
    if not data:
        return s, None
    page = array.array("i")
    page.frombytes(control[0][2])
    return s, page[0]


def entries(page):
    m = mmap.mmap(page, 256 * 128, mmap.MAP_SHARED, mmap.PROT_READ)
    return [struct.unpack_from("IIIIQ8Q", m, 128 * i) for i in range(1, 256)]


def check_page(path):
    s, page = connect(path)
    check(page is not None, "a page arrives")
    try:
        mmap.mmap(page, 256 * 128, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        check(False, "the page cannot be mapped for writing")
    except OSError:
        print("ok   the page cannot be mapped for writing")
    m = mmap.mmap(page, 256 * 128, mmap.MAP_SHARED, mmap.PROT_READ)
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/maps", encoding="utf-8") as f:
        address = next(int(line.split("-")[0], 16) for line in f if "bpf-map" in line or "bpf_map" in line)
    check(libc.mprotect(ctypes.c_void_p(address), 4096, 3) != 0, "nor made writable")
    key, value = ctypes.c_uint32(0), (ctypes.c_char * 128)()
    attr = struct.pack("=IIQQQ", page, 0, ctypes.addressof(key), ctypes.addressof(value), 0)
    check(libc.syscall(321, 2, attr, len(attr)) != 0 if os.uname().machine == "x86_64" else True, "nor written by bpf(2)")
    del m
    other = os.getppid()
    for tid in (other, 1, os.getpid()):
        s.send(struct.pack("I", tid))
    until(lambda: any(e[1] for e in entries(page)), "a thread is registered")
    time.sleep(0.3)
    check([e[1] for e in entries(page) if e[1]] == [os.getpid()], "only threads of the own process are registered")
    second, page2 = connect(path)
    second.send(struct.pack("I", os.getpid()))
    time.sleep(0.5)
    check(not any(e[1] for e in entries(page2)), "a thread has one page")
    second.close()
    s.send(b"x")
    s.settimeout(60)
    check(s.recv(4) == b"", "a message of another length ends the connection")


def check_failures(path):
    """TIDs that do not exist: the process is disconnected."""
    s, _ = connect(path)
    try:
        for i in range(200):
            s.send(struct.pack("I", 4_000_000 + i))
            time.sleep(0.002)
        ended = s.recv(4) == b""
    except ConnectionError:
        ended = True
    check(ended, "a process that sends numbers at random is disconnected")


def check_user(path):
    """Another user reads the own counters."""
    pid = os.fork()
    if pid == 0:
        os.setgid(65534)
        os.setuid(65534)
        s, page = connect(path)
        s.send(struct.pack("I", os.getpid()))
        until(lambda: any(e[1] == os.getpid() and e[0] for e in entries(page)), "the thread is registered")
        os._exit(0)
    check(os.waitpid(pid, 0)[1] == 0, "a user without privileges reads the own counters")


def as_nobody(run):
    """Runs a function in a child process as the user nobody. Returns its exit status."""
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            os._exit(run())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check_set_user_id(tmp, path):
    """The page of a process that starts a program of another user is closed; that of one that starts another program is not."""
    for mode, closes in ((0o755, False), (0o4755, True)):
        program = f"{tmp}/program"
        shutil.copy("/bin/sleep", program)
        os.chmod(program, mode)
        if os.statvfs(tmp).f_flag & os.ST_NOSUID:
            print("     not run: this file system ignores set-user-ID bits")
            return
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            s, page = connect(path)
            s.send(struct.pack("I", os.getpid()))
            until(lambda: any(e[1] for e in entries(page)), "the thread is registered")
            socket.send_fds(theirs, [b"x"], [page])
            os.set_inheritable(s.fileno(), True)  # so that the connection does not end
            os.execv(program, [program, "600"])
        _, (page,), *_ = socket.recv_fds(ours, 1, 1)
        m = mmap.mmap(page, 256 * 128, mmap.MAP_SHARED, mmap.PROT_READ)
        closed = False
        for _ in range(600 if closes else 30):
            time.sleep(0.1)
            closed = struct.unpack_from("I", m, 16)[0] == 1
            if closed:
                break
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(page)
        check(closed == closes, f"after a program of mode {mode:o} of root, the page is {'closed' if closed else 'open'}")


def check_threads_of_user(path):
    """A user without privileges takes at most half of the places for threads."""
    stop = threading.Event()

    def register():
        """Registers 200 threads of this process. Returns those that the page has."""
        tids, started = [], threading.Barrier(201)

        def rest():
            tids.append(threading.get_native_id())
            started.wait()
            stop.wait()
        for _ in range(200):
            threading.Thread(target=rest, daemon=True).start()
        started.wait()
        s, page = connect(path)
        found = 0
        for i in range(0, 200, 20):
            for tid in tids[i:i + 20]:
                s.send(struct.pack("I", tid))
            time.sleep(0.15)
        same = 0
        for _ in range(600):  # until the monitor has read all messages: 3 s without another thread
            now = sum(e[1] != 0 for e in entries(page))
            same = same + 1 if now == found and now else 0
            found = now
            if same == 15 or found == 200:
                break
            time.sleep(0.2)
        return s, page, found

    def twice():
        first, second = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:  # another process of this user
            kept = register()  # with the connection
            os.write(first[1], bytes((kept[2],)))
            os.read(second[0], 1)
            os._exit(0)
        other = os.read(first[0], 1)[0]
        _, _, found = kept = register()
        print(f"     {other} and {found} threads of one user")
        os.write(second[1], b"x")
        os.waitpid(pid, 0)
        return 0 if other == 200 and 50 <= found <= 56 and kept else 1
    check(as_nobody(twice) == 0, "a user takes at most 256 places for threads")


def check_storm(path, other):
    """A user who asks for threads that do not exist, in a PID namespace of its own and with new connections, delays nobody: the
    monitor keeps up with another one, which the user does not ask. On a busy machine the kernel makes both wait."""
    code = """
import array, os, socket, struct, sys, threading, time
for _ in range(3000):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print("ready", flush=True)
end, kept = time.monotonic() + float(sys.argv[2]), []
while time.monotonic() < end:
    try:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        s.connect(sys.argv[1])
        kept.append(s)
    except OSError:
        pass
    for s in kept[:]:
        try:
            for i in range(70):
                s.send(struct.pack("I", 1000000000 + i))
        except BlockingIOError:
            pass
        except OSError:
            kept.remove(s)
            s.close()
    time.sleep(0.001)
"""
    def as_nobody_in_namespace(*args):
        return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "unshare", "-Ur", "-pf", "--kill-child", "--mount-proc", *args]
    python = next((p for p in (sys.executable, "/usr/bin/python3")
                   if subprocess.run(as_nobody_in_namespace(p, "-c", ""), capture_output=True, check=False, cwd="/").returncode == 0), None)
    if not python:
        print("     not run: the user nobody cannot run Python in a PID namespace here")
        return

    def periods(of):
        with urllib.request.urlopen(f"http://127.0.0.1:{of.port}/metrics", timeout=300) as answer:
            return int(re.search(r"\nstealscope_periods_total (\d+)", answer.read().decode())[1])

    def cpu_time(pid):
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            words = f.read().rsplit(") ", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def sleeps(pid):
        """How many times the monitor went to sleep."""
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", f.read())[1])
    monitor = start_monitor(path, "--own", "process", "-d", "0.5", "--pid", str(os.getpid()))[0]
    attack = start(*as_nobody_in_namespace(python, "-c", code, path, "60"), cwd="/")
    attack.stdout.readline()
    time.sleep(1)
    begin, first, used, slept = time.monotonic(), [periods(other), periods(monitor)], cpu_time(monitor.pid), sleeps(monitor.pid)
    worst = 0
    for _ in range(8):
        periods(other)
        asked = time.monotonic() - waited(monitor.pid)
        periods(monitor)
        worst = max(worst, time.monotonic() - waited(monitor.pid) - asked)  # without what all others have taken
        time.sleep(0.5)
    took, (theirs, ours) = time.monotonic() - begin, (periods(m) - n for m, n in zip((other, monitor), first))
    cpu, slept = cpu_time(monitor.pid) - used, sleeps(monitor.pid) - slept
    attack.kill()
    monitor.terminate()
    monitor.wait(60)
    print(f"     scrapes take at most {worst:.3f} s, {ours} periods of 0.5 s in {took:.1f} s, {theirs} of the other monitor, "
          f"CPU time {cpu:.2f} s, {slept} wake-ups")
    check(worst < 5 and ours >= min(theirs / 2, took / 2), "the monitor goes on meanwhile")
    check(slept < 200 * took, "messages wake the monitor at most each 10 ms")


def check_limits(path):
    """At most 32 processes of a user; those that end make place."""
    readers = []
    for _ in range(36):
        s, page = connect(path)
        readers.append((s, page))
    refused = sum(page is None for _, page in readers)
    check(refused == 4, f"32 connections of a user are accepted ({36 - refused})")
    for s, page in readers:
        s.close()
        if page is not None:
            os.close(page)
    later = []
    until(lambda: later.append(connect(path)) or later[-1][1] is not None, "and others later")
    for s, _ in later:
        s.close()


def check_end(path, monitor):
    s, page = connect(path)
    monitor.terminate()
    check(monitor.wait(timeout=300) == 0, "the monitor ends")
    m = mmap.mmap(page, 256 * 128, mmap.MAP_SHARED, mmap.PROT_READ)
    check(struct.unpack_from("I", m, 16)[0] == 1, "the page is closed")
    check(not os.path.exists(path), "the socket is removed")
    s.close()


UNLOADING = """
import _ctypes, ctypes, sys, threading
lib, marked, unloaded = ctypes.CDLL(sys.argv[1]), threading.Event(), threading.Event()
def mark():
    lib.srbn_live(b"/nonexistent")
    lib.srbn_end(ctypes.c_uint64(lib.srbn_start()))
    marked.set()
    unloaded.wait()
thread = threading.Thread(target=mark)
thread.start()
marked.wait()
_ctypes.dlclose(lib._handle)
unloaded.set()
thread.join()
"""


def check_unloading():
    """A plugin that is unloaded: the end of a thread that marked a request calls the library."""
    p = subprocess.run([sys.executable, "-c", UNLOADING, LIBRARY], check=False, timeout=300)
    check(p.returncode == 0, f"a thread ends after dlclose() ({p.returncode})")


def main():
    if is_sanitized():
        skip("python cannot load a library with sanitizers")
    check_unloading()
    with scratch() as tmp:
        path = os.path.join(tmp, "socket")
        os.chmod(tmp, 0o755)
        check(run("monitor", "-l", "127.0.0.1:0", "--publish", "x" * 200, status=None).returncode in (1, 4), "a path that is too long is refused")
        monitor, why = start_monitor(path, "--own", "process", "-d", "0.5")
        if not monitor:
            check("BPF" in why or "libbpf" in why, f"the reason is named: {why}")
            skip("BPF cannot be used here")
        try:
            check_values(tmp, path)
            check_container(path)
            check_page(path)
            check_failures(path)
            check_user(path)
            check_set_user_id(tmp, path)
            check_threads_of_user(path)
            check_storm(os.path.join(tmp, "storm"), monitor)
            check_limits(path)
            check_end(path, monitor)
            check_guest(path)
            check_share(tmp)
        finally:
            for p in children:
                p.kill()


if __name__ == "__main__":
    main()
