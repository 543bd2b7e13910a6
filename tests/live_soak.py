"""Soak of stealscope monitor: a process with a vCPU thread is started and ended every second. Memory stays flat, the kernel's
maps do not fill, no counter ever decreases or is lost.

    tests/live_soak.py [SECONDS]           `make check-live` runs it for 30 s"""
import re
import socket
import subprocess
import sys
import time
import urllib.request

from e2e import PROGRAM, check, run, skip
from live_scene import HOG, VM_PROCESS, children, last_cpu, start, stop_all


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                for line in answer.read().decode().splitlines() if not line.startswith("#")}


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(r"VmRSS:\s*(\d+)", f.read()).group(1))


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30
    if "without BPF" in run("top", "-b", "-d", "0.2", "--pid", "1", status=None).stderr:
        skip("BPF is not allowed here")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    start(HOG, last_cpu(), "burnP6")
    # The main thread of vm_process has this name as well, so it is found by its name each time.
    monitor = subprocess.Popen([PROGRAM, "monitor", "-l", f"127.0.0.1:{port}", "-d", "0.5", "--comm", "CPU 0/KVM"],
                               stderr=subprocess.DEVNULL)
    children.append(monitor)
    last, sizes, rounds, series = {}, [], 0, set()
    begin, next_check = time.monotonic(), 0
    while time.monotonic() < begin + seconds or rounds < 5:
        vm = subprocess.Popen([VM_PROCESS, str(last_cpu()), "0.7", "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        children.append(vm)
        vm.stdout.readline()
        time.sleep(0.3)
        vm.stdin.write("go\n")
        vm.stdin.flush()
        vm.stdout.readline()
        vm.kill()
        vm.wait()
        children.remove(vm)
        rounds += 1
        if time.monotonic() < next_check:
            continue
        next_check = time.monotonic() + 5
        try:
            now = scrape(port)
        except OSError:
            check(monitor.poll() is None, "the monitor runs")
            continue  # its program is not yet loaded
        sizes.append(resident(monitor.pid))
        series |= set(now)
        shrunk = {k: (v, now.get(k)) for k, v in last.items() if "_total" in k and now.get(k, -1) < v}
        check(not shrunk, f"counters that decreased or vanished: {shrunk}") if shrunk else None
        last = now
    third = len(sizes) // 3
    grown = max(sizes[-third:]) - max(sizes[third:2 * third]) if third else 0
    periods, ran = last["stealscope_periods_total"], sum(v for k, v in last.items() if 'state="ran"' in k)
    check(monitor.poll() is None and periods > rounds, f"{rounds} VMs, {periods:.0f} periods, {len(series)} series, ran {ran:.1f} s")
    check(grown <= 512, f"memory: {sizes[0]} kB at first, {sizes[-1]} kB at last, in the last third {grown} kB more than before")
    monitor.terminate()
    check(monitor.wait(timeout=60) == 0, "the monitor ends with status 0")


if __name__ == "__main__":
    try:
        main()
    finally:
        stop_all()
