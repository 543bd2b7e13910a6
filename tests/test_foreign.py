"""A guest of another recording matches no VM of this host: by sync events, by containment and by a given clock."""
import glob
import json
import os
import shutil

from e2e import check, run, scratch, simulate

# Seeds that once matched: pairs without bounds, and a clock with many events in guest mode by chance.
FOREIGN = (("12", "auto", ()), ("24", "none", ()), ("30", "none", ("--beacon", "0")), ("56", "none", ()))


# ... and traces so short that their few beacons agree with those of another guest.
SHORT = (("32", "200ms", "Ubuntu"), ("36", "50ms", "Debian"), ("36", "50ms", "Ubuntu"))

# ... and contradicting pairs with a clock that has nearly all events in guest mode, as any clock has.
ANYWHERE = ((("overcommit", "1"), "11", "12", "vm00"), (("nested",), "13", "14", "Inner"),
            (("nested",), "14", "13", "Inner"), (("random",), "11", "12", "Fedora"))

PACKET = 4096


def vms(history):
    """Returns the names of the VMs whose vCPUs are known."""
    text = run("info", history).stdout
    begin = text.index("virtual machine ")
    return {line.split()[0] for line in text[begin:text.index("\n\n", begin)].splitlines()[1:]}


def world(folder, seed, *args, duration="400ms"):
    if not os.path.isdir(folder):
        simulate(folder, "random", "--seed", seed, "--duration", duration, *args)
    return folder


def note_codes(history, machine):
    notes = json.loads(run("info", "--format", "json", history).stdout)["notes"]
    return {note["code"] for note in notes if note["machine"] == machine}


def check_foreign(history, how, here, guest):
    run("index", "--sync", how, "--host", here + "/host", "--guest", "Stranger=" + guest, "-o", history)
    check("Stranger" not in vms(history), f"the guest of another host is no VM here ({how}, {os.path.basename(here)})")
    check(note_codes(history, "Stranger") & {"clock-unknown", "clock-unknown-aligned", "vm-unknown"}, "and a note says why")


def check_disjoint(tmp):
    """A trace of another time matches no VM by names and numbers."""
    history, here = os.path.join(tmp, "h.steal"), os.path.join(tmp, "apart")
    simulate(here, "pulse", "--seed", "1", "--duration", "400ms", "--offset", "7s", "--drift", "0")
    run("index", "--sync", "none", here, "-o", history)
    check("Debian" not in vms(history) and "vm-unknown" in note_codes(history, "Debian"),
          "the only guest is not the only VM if it was recorded at another time")
    session = os.path.join(here, "a.yaml")
    with open(session, "w", encoding="utf-8") as f:
        f.write("host: {dir: host}\nguests: [{name: Debian, dir: guest-Debian, vcpus: {0: 123}}]\n")
    run("index", "--sync", "none", session, "-o", history)
    check("Debian" in vms(history) and "no-common-time" in note_codes(history, "Debian"), "a user who declares it gets a note")
    run("index", "--sync", "offset=-7s", here, "-o", history)
    check("Debian" in vms(history), "with its true clock it is")


def check_anywhere(tmp, history):
    for scenario, here, there, guest in ANYWHERE:
        folders = [os.path.join(tmp, scenario[0] + seed) for seed in (here, there)]
        for folder, seed in zip(folders, (here, there)):
            if not os.path.isdir(folder):
                simulate(folder, *scenario, "--seed", seed, "--events", "20000")
        check_foreign(history, "events", folders[0], folders[1] + "/guest-" + guest)
        run("index", "--sync", "events", folders[1], "-o", history)
        check(guest in vms(history), f"it is found on its own host ({scenario[0]} {there})")


def half(stream):
    os.truncate(stream, os.path.getsize(stream) // 2 // PACKET * PACKET)


def copied(folder, to, cut):
    """Copies the trace and applies cut() to each of its streams."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
    for stream in glob.glob(to + "/**/ch_*", recursive=True):
        cut(stream)
    return to


def check_twice(tmp):
    """The same trace under two names, whole or as an excerpt, is one machine, and a note says so."""
    history, here = os.path.join(tmp, "h.steal"), os.path.join(tmp, "packets")
    world(here, "1", "--perfect-clocks", "--packet", str(PACKET))
    again = ": clock not synchronized (the same trace was given for another machine)"
    for how in ("auto", "none"):
        for name, folder in (("Copy", "/guest-Debian"), ("Host", "/host")):
            copy = os.path.join(tmp, "copy-" + name)
            if not os.path.isdir(copy):
                shutil.copytree(here + folder, copy)
            p = run("index", "--sync", how, here, "--guest", name + "=" + copy, "-o", history)
            check(name + again in p.stderr and name not in vms(history), f"the duplicate {name} is reported ({how})")
            check("Debian" in vms(history) and "Debian: " not in p.stderr, "and the first one is unchanged")
    for cut in (half, lambda stream: os.remove(stream) if stream.endswith("_1") else None):
        for how in ("auto", "containment", "none"):
            for name, folder in (("Copy", "/guest-Debian"), ("Host", "/host")):
                copy = copied(here + folder, os.path.join(tmp, "cut"), cut)
                p = run("index", "--sync", how, here, "--guest", name + "=" + copy, "-o", history)
                check(name + again in p.stderr and name not in vms(history), f"an excerpt of {folder} is reported ({how})")
                check("Debian" in vms(history) and "Debian: " not in p.stderr, "and the whole one is unchanged")
        copied(here + "/host", here + "/host-again", cut)
        p = run("index", here, "-o", history, status=2)
        check("host-again" in p.stderr and "the same trace was given for another host" in p.stderr,
              "an excerpt of a host's trace is no second host")
        shutil.rmtree(here + "/host-again")
    shutil.copytree(here + "/host", here + "/host-again")
    p = run("index", here, "-o", history, status=2)
    check("the same trace was given for another host" in p.stderr, "a host given twice is no second host")
    shutil.rmtree(here + "/host-again")


def main():
    with scratch() as tmp:
        history = os.path.join(tmp, "h.steal")
        for seed, how, args in FOREIGN:
            here, there = (world(os.path.join(tmp, s), s, "--perfect-clocks", *args) for s in (seed, "5000" + seed))
            check_foreign(history, how, here, there + "/guest-Debian")
        for seed, duration, guest in SHORT:
            here = world(os.path.join(tmp, "long" + seed), seed, duration="800ms")
            there = world(os.path.join(tmp, "7000" + seed), "7000" + seed, duration=duration)
            check_foreign(history, "auto", here, there + "/guest-" + guest)
        here = world(os.path.join(tmp, "1"), "1", "--perfect-clocks")
        guests = {d[len("guest-"):] for d in os.listdir(here) if d.startswith("guest-")}
        for offset in ("0us", "2us", "20us"):
            run("index", "--sync", "offset=" + offset, here, "-o", history)
            check(guests <= vms(history), f"a clock that is {offset} off matches all {len(guests)} guests")
        check_anywhere(tmp, history)
        check_disjoint(tmp)
        check_twice(tmp)


main()
