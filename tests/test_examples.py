"""The examples in share/examples: they compile without warnings, run, and print consistent counters; the server sheds load
when the provider is slow, and only then."""
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

from e2e import BUILD, SOURCE, check, free_port, is_emulated, is_sanitized, scratch, skip

FOLDER = os.path.join(SOURCE, "share", "examples")
SO = "libstealscope-mark.so.1"
SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True:\n    pass\n"
ENVIRONMENT = {**os.environ, "LD_LIBRARY_PATH": BUILD, "STEALSCOPE_LIVE": "/nonexistent",
               "LIBSTEALSCOPE_MARK": os.path.join(BUILD, SO), "STEALSCOPE_MARKER": "/nonexistent"}


def build(compiler, name, to, *more):
    found = shutil.which(compiler)
    if not found:
        skip(f"no {compiler}")
    p = subprocess.run([found, "-O1", "-Wall", "-Wextra", "-Werror", *more, os.path.join(FOLDER, name), f"-I{SOURCE}/src/beacon",
                        os.path.join(BUILD, SO), "-o", to], capture_output=True, text=True, check=False)
    check(p.returncode == 0, f"{name} compiles {p.stderr}")
    return to


def check_counters(*command):
    p = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=300)
    found = re.fullmatch(r"latency ([\d.]+) ms, stolen ([\d.]+) to ([\d.]+) ms, source (\d), flags \d+\n", p.stdout)
    check(found is not None, f"{command[-1]}: {p.stdout}{p.stderr}")
    latency, low, high = (float(n) for n in found.groups()[:3])
    check(25 <= latency and 0 <= low <= high <= latency and found.group(4) == "4", "its counters are consistent")


def statuses(port, n):
    """Returns how many of n requests were answered and refused."""
    count = {200: 0, 503: 0}
    for _ in range(n):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=300) as answer:
                count[answer.status] += 1
        except urllib.error.HTTPError as e:
            count[e.code] += 1
    return count[200], count[503]


def check_server(program, cpu, limit):
    port = free_port()
    server = subprocess.Popen([program, str(port), str(limit)], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    try:
        check(server.stderr.readline() == "source of counters: 4\n", "the server uses schedstat")
        return statuses(port, 24)
    finally:
        server.kill()


def main():
    if is_sanitized() or is_emulated():
        skip("the library cannot be loaded into other programs")
    if not os.path.exists("/proc/thread-self/schedstat"):
        skip("no schedstat")
    with scratch() as tmp:
        check_counters(build("c++", "request.cc", os.path.join(tmp, "request"), "-std=c++17"))
        check_counters(sys.executable, os.path.join(FOLDER, "srbn.py"))
        server = build("cc", "shed_load.c", os.path.join(tmp, "shed_load"))
        cpu = max(os.sched_getaffinity(0))
        hogs = [subprocess.Popen([sys.executable, "-c", SPIN, str(cpu)]) for _ in range(2)]
        try:
            time.sleep(0.3)
            answered, refused = check_server(server, cpu, 0.2)
            check(answered >= 12 and refused >= 4, f"with neighbours it sheds load: {answered} answered, {refused} refused")
            answered, refused = check_server(server, cpu, 1.0)
            check((answered, refused) == (24, 0), "not below its limit")
        finally:
            for p in hogs:
                p.kill()


main()
