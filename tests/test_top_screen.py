"""The screen of stealscope top, on a pty that tmux interprets: sizes, keys, resize, ^Z, mouse, freeze, glyphs, themes, and
recordings that it starts."""
import glob
import os
import re
import shutil
import subprocess
import sys
import time

from e2e import PROGRAM, check, processes_with, run, scratch, skip
from live_scene import Vcpus
from test_top_cores import make_root
from tmux_screen import Screen, screens

HOG = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(15, sys.argv[2].encode(), 0, 0, 0)
os.sched_setaffinity(0, {int(sys.argv[1])})
while True:
    pass
"""
children = []


def start_hog(cpu, name):
    p = subprocess.Popen([sys.executable, "-c", HOG, str(cpu), name])
    children.append(p)
    return p


def top(pid, *args):
    return " ".join([PROGRAM, "top", "-d", "0.4", "--pid", str(pid), *args])


SENTENCE = r"^. (\S.*(waited|was throttled) \d+ %|no vCPU waits)"


def check_sizes(tmp, pid):
    for w, h in ((80, 24), (120, 40), (40, 12), (300, 80)):
        s = Screen(tmp, w, h, top(pid))
        text = s.wait(SENTENCE)
        check(text is not None, f"{w}x{h}: the sentence is there")
        lines = text.rstrip("\n").split("\n")
        check("stealscope top" in lines[0] and "? help" in lines[-1], f"{w}x{h}: header and hints")
        check(len(lines) == h and all(len(line) <= w for line in lines), f"{w}x{h}: the screen is full")
        check(re.search(r"%RUN\s+%STEAL", text) and "victim" in text, f"{w}x{h}: the table has the victim")
        s.keys("q")
        check(s.wait("^ended 0"), f"{w}x{h}: q ends it")
        s.close()


def check_lanes(s):
    """The lane of the hogs' CPU has the letters of both, and the legend names them."""
    s.keys("3")
    cpu = max(os.sched_getaffinity(0))
    text = s.wait(rf"^CPU{cpu} .* [a-zA-Z*.]{{2,}}$")
    check(text, "a pCPU has a lane")
    for _ in range(40):
        letters = dict((name, letter) for letter, name in re.findall(r"(?:^|  )([a-zA-Z]) (taker|victim)\b", text, re.M))
        lane = re.search(rf"^CPU{cpu} .* ([a-zA-Z*.]+)$", text, re.M).group(1)
        if any(letter in lane for letter in letters.values()):
            break
        time.sleep(0.25)
        text = s.text()
    check(any(letter in lane for letter in letters.values()), f"{letters} in {lane}")
    s.keys("1")
    check(s.wait(r"^VM "), "back to the VMs")


def check_core(tmp, pid):
    """Enter shows the time beside a busy CPU of the core; the topology is not that of this machine."""
    cpus = sorted(os.sched_getaffinity(0))
    s = Screen(tmp, 100, 30, top(pid, "--root", make_root(f"{tmp}/root", (cpus[0], cpus[-1]))))
    check(len(cpus) < 2 or s.wait(SENTENCE), "a host with two CPUs per core")
    s.keys("Enter")
    check(len(cpus) < 2 or s.wait(r"^ ran \S+ \S+, of that \S+ \S+ \(\d+ %\) beside a busy CPU of its core"), "Enter shows that time")
    s.close()


def check_keys(tmp, pid):
    s = Screen(tmp, 100, 30, top(pid))
    check(s.wait(SENTENCE), "the screen is there")
    s.keys("Enter")
    check(s.wait(r"who had the CPU while.*waited") and s.wait(r"% host/\d+ taker"), "Enter names the culprit")
    s.keys("Enter")
    check(s.wait(r"^culprit .*%TOOK"), "Enter again shows the culprits")
    s.keys("1")
    for key, heading in (("2", r"^vCPU "), ("3", r"^pCPU "), ("4", r"^culprit "), ("1", r"^VM ")):
        s.keys(key)
        check(s.wait(heading), f"view {key}")
    check_lanes(s)
    s.keys(">")
    check(s.wait("sorted by %RUN"), "> sorts by the next column")
    s.keys("?")
    check(s.wait(r"^T +keep the last 10 s"), "? lists the keys")
    s.keys("x")
    check(s.wait(SENTENCE), "any key closes the help")
    s.keys("\\", "nosuch", "Enter")
    check(s.wait("nothing matches the filter"), "\\ filters")
    s.keys("Escape")
    check(s.wait(r"^. victim"), "Esc clears the filter")
    s.keys("/", "nosuch")
    check(s.wait("search: nosuch"), "/ asks for a name")
    s.keys("Enter")
    check(s.wait("no row contains"), "a search without match says so")
    s.keys("d", "C-u", "0.01", "Enter")
    check(s.wait("not between 0.1 and 3600"), "d refuses a period that is too short")
    s.keys("d", "C-u", "0.2", "Enter")
    check(s.wait("every 0.2s"), "d changes the period")
    s.keys("Left")
    check(s.wait("Space freezes the screen first"), "Left needs a frozen screen")
    time.sleep(2)  # seconds of samples to walk through
    s.keys(" ")
    check(s.wait("FROZEN"), "Space freezes")
    time.sleep(1)
    clock = re.search(r"\d\d:\d\d:\d\d", s.text()).group()
    s.keys(*["Left"] * 12)
    end = time.monotonic() + 5
    while (before := re.search(r"\d\d:\d\d:\d\d", s.text()).group()) >= clock and time.monotonic() < end:
        time.sleep(0.1)
    check(before < clock, f"Left walks back: {before} before {clock}")
    s.keys(" ", "S")
    check(s.wait("wrote stealscope-top-.*svg"), "S writes the screen")
    name = re.search(r"wrote (\S+svg)", s.text()).group(1)
    with open(os.path.join(tmp, name), encoding="utf-8") as f:
        picture = f.read()
    check(picture.startswith("<svg") or "<svg" in picture[:300] and "stealscope top" in picture, "it is a picture of the screen")
    s.keys("y")
    check(s.wait("copied"), "y copies")
    s.close()


def check_terminal(tmp, pid):
    """Resize, ^Z, mouse."""
    s = Screen(tmp, 100, 30, "bash --norc -i")
    s.keys(top(pid), "Enter")
    check(s.wait(SENTENCE), "from a shell")
    s.tmux("resize-window", "-x", "60", "-y", "20")
    time.sleep(1)
    lines = s.text().rstrip("\n").split("\n")
    check(len(lines) == 20 and "? help" in lines[-1] and all(len(line) <= 60 for line in lines), "it follows a resize")
    s.tmux("resize-window", "-x", "30", "-y", "6")
    check(s.wait(r"\A(\S.*waited|no vCPU)"), "a tiny terminal shows the sentence")
    s.tmux("resize-window", "-x", "100", "-y", "30")
    check(s.wait(r"^VM "), "and it recovers")
    s.keys("C-z")
    check(s.wait("Stopped"), "^Z stops it")
    s.keys("fg", "Enter")
    check(s.wait(SENTENCE), "fg continues it")
    s.keys("2")
    check(s.wait(r"^vCPU "), "vCPUs")
    s.tmux("send-keys", "-l", "\x1b[<0;3;8M\x1b[<0;3;8m")
    check(s.wait(SENTENCE), "a click is accepted")
    s.keys("q")
    check(s.wait(r"[#$] *$"), "the shell is back")
    s.close()


def check_looks(tmp, pid):
    for tier, letters in (("ascii", ""), ("cells", ""), ("blocks", "█▁▂▃▄▅▆▇")):
        s = Screen(tmp, 80, 24, top(pid, "--glyphs", tier))
        text = s.wait(SENTENCE)
        time.sleep(1)
        other = {c for c in s.text() if ord(c) > 126}
        check(text and other <= set(letters) and bool(other) == bool(letters), f"tier {tier}: {''.join(sorted(other))}")
        s.close()
    for theme in ("cvd-light", "cvd-dark", "mono"):
        s = Screen(tmp, 80, 24, top(pid, "--theme", theme))
        check(s.wait(SENTENCE), f"theme {theme}")
        s.close()
    s = Screen(tmp, 80, 24, top(pid), env="NO_COLOR=1")
    check(s.wait(SENTENCE) and not re.search(r"\x1b\[[0-9;]*3[0-7]", s.tmux("capture-pane", "-p", "-e")),
          "NO_COLOR shows no colours")
    s.close()


def check_recordings(tmp, pid):
    """On a VM of KVM if one can be made: the proposed trigger fires on its waits. Otherwise on a thread."""
    name = f"screen{os.getpid()}"
    vm = Vcpus(max(os.sched_getaffinity(0)), 600, 1, "kvm", "-name", name)
    children.append(vm.process)
    is_vm = any("kvm-vcpu" in os.readlink(fd) for fd in glob.glob(f"/proc/{vm.pid}/fd/*"))
    name = name if is_vm else "victim"
    vm.begin()
    s = Screen(tmp, 100, 30, f"{PROGRAM} top -d 0.4" if is_vm else top(pid), f"SCENE={tmp}")
    check(s.wait(SENTENCE), "the screen is there")
    check(s.wait(name), "and the row")
    s.keys("/", name, "Enter")  # rows are groups first: the cursor goes to the VM
    s.keys("T", "C-u", "nonsense", "Enter")
    check(s.wait("not armed: .*nonsense"), "a wrong trigger is refused, with the reason")
    s.keys("T")
    check(s.wait(rf"keep the last 10 s when: gap\((thread:)?{name}\)>\d+ms"), "T proposes the threshold")
    s.keys(*(("Enter",) if is_vm else ("C-u", "load>0.0001", "Enter")))
    check(s.wait("armed: stealscope record --flight"), "T arms, and shows the equal command")
    check(s.wait(r"saved +stealscope-flight-", 60), "the saved recording is listed")
    s.keys("End", "Down", "Enter")
    check(s.wait(r"most delayed in|victims in", 60), "Enter opens it in the viewer")
    s.keys(":quit", "Enter")
    check(s.wait(SENTENCE, 60), "the end of the viewer comes back")
    s.keys("/", name, "Enter", "r")  # rows of other programs come and go
    check(s.wait("longest gap of .*|never waited", 120), "r records, and opens the viewer at the longest wait")
    s.keys(":quit", "Enter")
    check(s.wait(SENTENCE), "the end of the viewer comes back")
    s.keys(" ")
    check(s.wait("FROZEN"), "Space freezes")
    s.keys(*["Left"] * 4)
    time.sleep(0.6)
    check("no more samples" not in s.text(), "the samples from before the recording are still there")
    s.keys("q")
    check(s.wait("^ended 0", 60), "q ends it")
    s.close()
    left = processes_with(f"SCENE={tmp}")
    check(not [command for command in left if " record " in command], f"no recorder is left: {left}")


def main():
    if not shutil.which("tmux"):
        skip("tmux is not installed")
    probe = run("top", "-b", "-d", "0.2", "--pid", str(os.getpid()), status=None)
    if "without BPF" in probe.stderr:
        skip(f"BPF is not allowed here: {probe.stderr.strip()}")
    cpu = max(os.sched_getaffinity(0))
    start_hog(cpu, "taker")
    victim = start_hog(cpu, "victim")
    time.sleep(0.3)
    with scratch() as tmp:
        parts = {"sizes": check_sizes, "core": check_core, "keys": check_keys, "terminal": check_terminal, "looks": check_looks,
                 "recordings": check_recordings}
        for name in sys.argv[1:] or parts:
            parts[name](tmp, victim.pid)


try:
    main()
finally:
    for screen in screens:
        screen.close()
    for child in children:
        child.kill()
