"""A guest of another recording is none of this host's VMs, by its events, by containment and by a clock that is given."""
import glob
import os
import shutil

from e2e import check, run, scratch, simulate

# What once made a VM of them: pairs that bound nothing, and a clock by which many events lay within guest mode by chance.
STRANGERS = (("12", "auto", ()), ("24", "none", ()), ("30", "none", ("--beacon", "0")), ("56", "none", ()))


# ... and what happened in so short a time that the few beacons agree with those of another one.
SHORT = (("32", "200ms", "Ubuntu"), ("36", "50ms", "Debian"), ("36", "50ms", "Ubuntu"))

# ... and pairs that contradict each other, by which nearly all events lie within guest mode as they do by any clock.
ANYWHERE = ((("overcommit", "1"), "11", "12", "vm00"), (("nested",), "13", "14", "Inner"),
            (("nested",), "14", "13", "Inner"), (("random",), "11", "12", "Fedora"))

PACKET = 4096


def vms(history):
    """The names of the virtual machines whose vCPUs are known."""
    text = run("info", history).stdout
    begin = text.index("virtual machine ")
    return {line.split()[0] for line in text[begin:text.index("\n\n", begin)].splitlines()[1:]}


def world(folder, seed, *args, duration="400ms"):
    if not os.path.isdir(folder):
        simulate(folder, "random", "--seed", seed, "--duration", duration, *args)
    return folder


def check_stranger(history, how, here, guest):
    p = run("index", "--sync", how, "--host", here + "/host", "--guest", "Stranger=" + guest, "-o", history)
    check("Stranger" not in vms(history), f"the guest of another host is no VM here ({how}, {os.path.basename(here)})")
    check("Stranger: " in p.stderr and " cannot be told (" in p.stderr, "and a note says why")


def check_apart(tmp):
    """Names and numbers make a VM of nothing that was recorded at another time."""
    history, here = os.path.join(tmp, "h.steal"), os.path.join(tmp, "apart")
    simulate(here, "pulse", "--seed", "1", "--duration", "400ms", "--offset", "7s", "--drift", "0")
    p = run("index", "--sync", "none", here, "-o", history)
    check("Debian" not in vms(history) and "nothing of it is of the host's time)" in p.stderr,
          "the only guest is not the only VM when it was recorded at another time")
    session = os.path.join(here, "a.yaml")
    with open(session, "w", encoding="utf-8") as f:
        f.write("host: {dir: host}\nguests: [{name: Debian, dir: guest-Debian, vcpus: {0: 123}}]\n")
    p = run("index", "--sync", "none", session, "-o", history)
    check("Debian" in vms(history) and "no row of one says" in p.stderr, "who says that it is, is told")
    run("index", "--sync", "offset=-7s", here, "-o", history)
    check("Debian" in vms(history), "by its true clock it is")


def check_anywhere(tmp, history):
    for scenario, here, there, guest in ANYWHERE:
        folders = [os.path.join(tmp, scenario[0] + seed) for seed in (here, there)]
        for folder, seed in zip(folders, (here, there)):
            if not os.path.isdir(folder):
                simulate(folder, *scenario, "--seed", seed, "--events", "20000")
        check_stranger(history, "events", folders[0], folders[1] + "/guest-" + guest)
        run("index", "--sync", "events", folders[1], "-o", history)
        check(guest in vms(history), f"where it was recorded it is found ({scenario[0]} {there})")


def half(stream):
    os.truncate(stream, os.path.getsize(stream) // 2 // PACKET * PACKET)


def copied(folder, to, cut):
    """A copy of the trace, cut() applied to each of its streams."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
    for stream in glob.glob(to + "/**/ch_*", recursive=True):
        cut(stream)
    return to


def check_twice(tmp):
    """The same trace under two names, whole or cut, is one machine, and that is said."""
    history, here = os.path.join(tmp, "h.steal"), os.path.join(tmp, "packets")
    world(here, "1", "--perfect-clocks", "--packet", str(PACKET))
    again = ": its clock cannot be told (the same trace is given as another machine's, too)"
    for how in ("auto", "none"):
        for name, folder in (("Copy", "/guest-Debian"), ("Host", "/host")):
            copy = os.path.join(tmp, "copy-" + name)
            if not os.path.isdir(copy):
                shutil.copytree(here + folder, copy)
            p = run("index", "--sync", how, here, "--guest", name + "=" + copy, "-o", history)
            check(name + again in p.stderr and name not in vms(history), f"{name} again is told ({how})")
            check("Debian" in vms(history) and "Debian: " not in p.stderr, "and the first one is what it was")
    for cut in (half, lambda stream: os.remove(stream) if stream.endswith("_1") else None):
        for how in ("auto", "containment", "none"):
            for name, folder in (("Copy", "/guest-Debian"), ("Host", "/host")):
                copy = copied(here + folder, os.path.join(tmp, "cut"), cut)
                p = run("index", "--sync", how, here, "--guest", name + "=" + copy, "-o", history)
                check(name + again in p.stderr and name not in vms(history), f"a cut copy of {folder} is told ({how})")
                check("Debian" in vms(history) and "Debian: " not in p.stderr, "and the whole one is what it was")
        copied(here + "/host", here + "/host-again", cut)
        p = run("index", here, "-o", history, status=2)
        check("host-again" in p.stderr and "the same trace is given as another host's, too" in p.stderr,
              "a cut copy of a host is no second one")
        shutil.rmtree(here + "/host-again")
    shutil.copytree(here + "/host", here + "/host-again")
    p = run("index", here, "-o", history, status=2)
    check("the same trace is given as another host's, too" in p.stderr, "a host that is given twice is no second one")
    shutil.rmtree(here + "/host-again")


def main():
    with scratch() as tmp:
        history = os.path.join(tmp, "h.steal")
        for seed, how, args in STRANGERS:
            here, there = (world(os.path.join(tmp, s), s, "--perfect-clocks", *args) for s in (seed, "5000" + seed))
            check_stranger(history, how, here, there + "/guest-Debian")
        for seed, duration, guest in SHORT:
            here = world(os.path.join(tmp, "long" + seed), seed, duration="800ms")
            there = world(os.path.join(tmp, "7000" + seed), "7000" + seed, duration=duration)
            check_stranger(history, "auto", here, there + "/guest-" + guest)
        here = world(os.path.join(tmp, "1"), "1", "--perfect-clocks")
        guests = {d[len("guest-"):] for d in os.listdir(here) if d.startswith("guest-")}
        for offset in ("0us", "2us", "20us"):
            run("index", "--sync", "offset=" + offset, here, "-o", history)
            check(guests <= vms(history), f"a clock that is {offset} off finds all {len(guests)} guests of its own")
        check_anywhere(tmp, history)
        check_apart(tmp)
        check_twice(tmp)


main()
