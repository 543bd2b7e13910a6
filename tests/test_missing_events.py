"""Recordings that lack kinds of events: nobody is blamed, and nothing called asleep, by what only those would have told."""
import os
import re

from e2e import DATA, SOURCE, check, run, scratch, table

with open(os.path.join(SOURCE, "src", "trace", "layouts", "lttng.yaml"), encoding="utf-8") as f:
    HEAD, EVENTS = f.read().split("events:\n", 1)


def without(*kinds, name_of_event=None):
    """The history of the bundled recording, without some kinds of events, and without those of a name."""
    name = "_".join(kinds) or "all"
    kept = [e for e in re.split(r"\n(?=  - )", EVENTS) if not re.search(r"kind: (?:%s)\b" % "|".join(kinds or ("-",)), e)]
    with open(f"{name}.yaml", "w", encoding="utf-8") as out:
        out.write(HEAD.replace("layout: lttng", f"layout: {name}") + "events:\n" + re.sub(rf", {name_of_event}\b", "", "\n".join(kept)))
    run("index", "--host", os.path.join(DATA, "fibonacci", "host"), "--layout", f"{name}.yaml", "-o", f"{name}.steal")
    return f"{name}.steal"


def taken(history, by):
    rows = table("steal", history, "Debian/CPU0", "--by", "thread")
    return sum(int(row["ns"]) for row in rows if re.search(by, row["thief"]))


def time_in(history, path, state):
    rows = table("intervals", history, path)
    return sum(int(row["end"]) - int(row["start"]) + 1 for row in rows if row["value"] == state)


def handlers(whole):
    """Where nothing tells when handlers end, no handler has the CPU from one switch to the next."""
    some = without("irq_exit", "softirq_exit", "hrtimer_exit")
    of, interrupts = taken(whole, "burnP6"), taken(whole, "interrupt|irq/")
    check(0 < interrupts < of / 10, f"burnP6 took {of} ns, interrupts {interrupts} ns")
    check(taken(some, "interrupt|irq/") == 0, "without the ends of handlers none took anything")
    check(of <= taken(some, "burnP6") <= of + interrupts, "who they interrupted did")


def entries(whole):
    """Exits without entries do not tell that the hypervisor is at work ever after, but how many there were."""
    some, path = without("kvm_entry"), "/Virtual Machines/Debian/CPUs/CPU0/Status"
    check(time_in(whole, path, "VMM") > 0, "with entries the hypervisor is seen at work")
    vms = {row["machine"] for row in table("exits", some)}
    check(vms == {"Debian"}, f"exits are told of {vms}")
    check(time_in(some, path, "VMM") == 0, "without entries it is not")
    counts = [{row["reason"]: row["count"] for row in table("exits", h)} for h in (whole, some)]
    check(counts[0] == counts[1], f"exits are {counts[1]}, as with entries {counts[0]}")


def births(whole):
    """Of who is new only a wakeup tells that it waits, and a waking is none."""
    some = without("sched_wakeup")
    new = 0
    for row in table("threads", whole, "host"):
        path = f"/Host/Threads/{row['tid']}/Status"
        first = table("intervals", whole, path)[:3]
        if [r["value"] for r in first] != ["", "BLOCKED", "PREEMPTED"]:
            continue
        at = int(first[2]["start"])
        said = [r["value"] for r in table("intervals", some, path) if int(r["start"]) <= at <= int(r["end"])]
        check(said == ["UNKNOWN"], f"{row['tid']} {row['name']} is {said[0]} when it waits for its first CPU")
        new += 1
    check(new > 0, f"{new} threads are new")


def unborn(whole):
    """Who is first seen when it gets a CPU has waited for it, or was born meanwhile where nobody records births."""
    some = without("sched_fork", name_of_event="sched_wakeup_new")
    new, said = 0, []
    for row in table("threads", whole, "host"):
        path = f"/Host/Threads/{row['tid']}/Status"
        first = table("intervals", whole, path)[0]
        if first["value"] == "":
            new += 1
            said += [r for r in table("intervals", some, path) if int(r["start"]) <= int(first["end"]) and r["value"] not in
                     ("", "UNKNOWN")]
    check(new > 0 and not said, f"{new} threads are not said to be anything before they are born {said}")


def wakers(whole):
    """A wakeup alone does not tell whose it is where the CPU of who is woken may have been left it by another one."""
    some = without("sched_waking")
    same, unknown, wrong = 0, 0, []
    for row in table("threads", whole, "host"):
        path = f"/Host/Threads/{row['tid']}/"
        woken = [int(r["start"]) for r in table("intervals", whole, path + "Status") if r["value"] == "PREEMPTED"]
        for what in ("Woken By", "Woken In") if woken else ():
            was, told = (table("intervals", h, path + what) for h in (whole, some))
            for at in woken:
                a, b = (next((r["value"] for r in of if int(r["start"]) <= at <= int(r["end"])), "") for of in (was, told))
                same, unknown = same + (a == b), unknown + (a != b == "")
                wrong += [] if b in ("", a) else [(path + what, at, a, b)]
    check(same > 0 and unknown > 0 and not wrong, f"of {same} it is known who woke them, and in what, of {unknown} not {wrong}")


with scratch() as folder:
    os.chdir(folder)
    everything = without()
    handlers(everything)
    entries(everything)
    births(everything)
    unborn(everything)
    wakers(everything)
