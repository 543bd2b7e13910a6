"""The screen of stealscope top, on a pty that tmux interprets: sizes, keys, resize, ^Z, mouse, freeze, glyphs, themes, and
recordings that it starts."""
import glob
import os
import re
import shutil
import sys
import time

from e2e import PROGRAM, check, processes_with, run, scratch, skip
from live_scene import HOG, Vcpus, last_cpu, start, stop, stop_all
from test_top_cores import make_root
from tmux_screen import Screen, screens

def top(pid, *args):
    return " ".join([PROGRAM, "top", "-d", "0.4", "--pid", str(pid), *args])


SENTENCE = r"^! \S.*(waited|was throttled) \d+ %"


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


def check_first(tmp, _):
    """A task waits for seconds for a CPU that two others have. Until it is switched its state is unknown, but it is not idle."""
    others = [start(HOG, last_cpu(), "other") for _ in range(2)]
    waiter = start(HOG, last_cpu(), "waiter")
    os.sched_setscheduler(waiter.pid, os.SCHED_IDLE, os.sched_param(0))
    for _ in range(4):
        s = Screen(tmp, 80, 24, top(waiter.pid))
        text = s.wait(r"%RUN\s+%STEAL")
        check(re.search(r"^[>v] \S", text, re.M), f"the first frame has a row: {text.splitlines()[2]}")
        s.close()
    stop(waiter, *others)


def check_lanes(s):
    """The lane of the hogs' CPU has the letters of both, and the legend names them."""
    s.keys("3")
    cpu = last_cpu()
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
    check(len(cpus) < 2 or s.wait(r"^ +\d+ victim"), "a host with two CPUs per core")
    s.keys("/", "victim", "Enter", "Enter")
    check(len(cpus) < 2 or s.wait(r"^ ran \S+ \S+, of that \S+ \S+ \(\d+ %\) beside a busy CPU of its core"), "Enter shows that time")
    s.close()


def check_keys(tmp, pid):
    s = Screen(tmp, 100, 30, top(pid))
    check(s.wait(r"^ +\d+ victim"), "the screen is there, unfolded")
    s.keys("/", "victim", "Enter", "Enter")  # there may be VMs of other tests
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
    check(s.wait(r"^ +\d+ victim"), "Esc clears the filter")
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
    check(s.wait(r"\Astealscope top.{0,46}\n(.{0,60}\n){18}\? help.{0,54}\n\Z"), "it follows a resize")
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
        text = s.wait(rf"{SENTENCE}(.*\n)*.*[{letters}]" if letters else SENTENCE)
        other = {c for c in text or "?" if ord(c) > 126}
        check(text and other <= set(letters), f"tier {tier}: {''.join(sorted(other))}")
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
    vm = Vcpus(last_cpu(), 600, 1, "kvm", "-name", name)
    is_vm = any("kvm-vcpu" in os.readlink(fd) for fd in glob.glob(f"/proc/{vm.pid}/fd/*"))
    name = name if is_vm else "victim"
    vm.begin()
    s = Screen(tmp, 100, 30, f"{PROGRAM} top -d 0.4" if is_vm else top(pid), f"SCENE={tmp}")
    check(s.wait(SENTENCE), "the screen is there")
    s.keys("\\", name, "Enter")  # other programs' rows come and go
    check(s.wait(rf"^(> |v | +\d+ ){name}"), "and the row")
    select = ("/", "vCPU0" if is_vm else name, "Enter")  # the VM's other threads have rows now and then
    s.keys(*select)
    s.keys("T", "C-u", "nonsense", "Enter")
    check(s.wait("not armed: .*nonsense"), "a wrong trigger is refused, with the reason")
    s.keys("T")
    check(s.wait(rf"keep the last 10 s when: gap\((thread:)?{name}\)>\d+ms"), "T proposes the threshold")
    s.keys(*(("Enter",) if is_vm else ("C-u", "load>0.0001", "Enter")))
    check(s.wait("armed: stealscope record --flight"), "T arms, and shows the equal command")
    check(s.wait(r"saved +stealscope-flight-", 300), "the saved recording is listed")
    s.keys("End", "Down", "Enter")
    check(s.wait(r"most delayed in|victims in", 300), "Enter opens it in the viewer")
    s.keys(":quit", "Enter")
    check(s.wait(SENTENCE, 300), "the end of the viewer comes back")
    s.keys(*select, "r")
    check(s.wait("longest gap of .*|never waited", 300), "r records, and opens the viewer at the longest wait")
    s.keys(":quit", "Enter")
    check(s.wait(SENTENCE), "the end of the viewer comes back")
    s.keys(" ")
    check(s.wait("FROZEN"), "Space freezes")
    s.keys(*["Left"] * 4)
    time.sleep(0.6)
    check("no more samples" not in s.text(), "the samples from before the recording are still there")
    s.keys("q")
    check(s.wait("^ended 0", 300), "q ends it")
    s.close()
    left = processes_with(f"SCENE={tmp}")
    check(not [command for command in left if " record " in command], f"no recorder is left: {left}")


def main():
    if not shutil.which("tmux"):
        skip("tmux is not installed")
    probe = run("top", "-b", "-d", "0.2", "--pid", str(os.getpid()), status=None)
    if "without BPF" in probe.stderr:
        skip(f"BPF is not allowed here: {probe.stderr.strip()}")
    start(HOG, last_cpu(), "taker")
    victim = start(HOG, last_cpu(), "victim")
    with scratch() as tmp:
        parts = {"first": check_first, "sizes": check_sizes, "core": check_core, "keys": check_keys, "terminal": check_terminal, "looks": check_looks,
                 "recordings": check_recordings}
        for name in sys.argv[1:] or parts:
            parts[name](tmp, victim.pid)


try:
    main()
finally:
    for screen in screens:
        screen.close()
    stop_all()
