"""Reading recordings of `stealscope record`: raw pages, names and processes of threads, the TSC as a clock, damage."""
import csv
import io
import json
import os
import random
import re
import shutil
import sys

from e2e import SHARED, check, document, notes, run, scratch, skip, table
from ftrace import HEAD, PAGE, Buffer, record, write_machine
from schema import faults, load

HZ = 2_000_000_000             # rate of the TSC: 2 cycles per ns
BEGIN = 1_800_000_000 * 10**9  # start of the recording, ns since the epoch
HOST0 = 5 * 10**12             # the host's TSC at the start, cycles
OFFSET = -(4 * 10**12 + 12345)  # the guest's TSC minus the host's, cycles
SECONDS = 4


def cycles(ns, guest=False):
    return HOST0 + ns * HZ // 10**9 + (OFFSET if guest else 0)


def about(clock, counts, hostname, late=0, rate=None, lost=0):
    """Returns the text of about.yaml; counts: the clock at the start and the end; late: how much later this machine's
    wall clock is, ns; rate: of the clock, mHz."""
    text = f"hostname: {hostname}\nmachine: x86_64\nclock: {clock}\n"
    if rate:
        text += f"millihertz: {rate}\n"
    for key, count, ns in (("started", counts[0], 0), ("stopped", counts[1], SECONDS * 10**9)):
        error = ", error: 5000" if hostname == "web" else ""
        text += f"{key}: {{clock: {count}, realtime: {BEGIN + late + ns}{error}}}\n"
    return text + f"lost: {lost}\n"


def stats(events, overrun=0):
    return f"entries: 0\noverrun: {overrun}\ncommit overrun: 0\nbytes: 0\ndropped events: 0\nread events: {events}\n"


def make(folder, tsc=True, guest_rate=True, shift=0):
    """Writes a recording of a host with one vCPU thread (310) of the guest web, and burn (99), which preempts it; shift: error
    of the TSC offset in the session, cycles.  Returns the numbers of events of host and guest."""
    host, guest, rnd = Buffer(), Buffer(), random.Random(18)
    n, m, t = 0, 0, 1_000_000

    def at(ns, inside=False):
        return (cycles(ns, inside) + (shift if inside else 0)) if tsc else ns + (7_000_000_000 if inside else 10**9)
    while t < (SECONDS - 1) * 10**9:
        n += 5
        inside = rnd.randrange(300_000, 4_000_000)
        host.add(at(t), record("sched_switch", 99, prev_comm="burn", prev_pid=99, next_comm="CPU 0/KVM", next_pid=310))
        host.add(at(t + 5000), record("kvm_entry", 310, vcpu_id=0))
        for k in range(3):
            m += 1
            time = t + 5500 + (inside - 1000) * k // 3
            guest.add(at(time, True), record("sched_waking", 7, comm="job", pid=8, target_cpu=0))
        host.add(at(t + 5000 + inside), record("kvm_exit", 310, vcpu_id=0, exit_reason=64, isa=2))
        host.add(at(t + 8000 + inside), record("sched_waking", 310, comm="burn", pid=99, target_cpu=0))
        host.add(at(t + 9000 + inside), record("sched_switch", 310, prev_comm="CPU 0/KVM", prev_pid=310,
                                               next_comm="burn", next_pid=99))
        t += inside + rnd.randrange(100_000, 3_000_000)
    end = SECONDS * 10**9
    rate = HZ * 1000 if tsc else None
    clock = "x86-tsc" if tsc else "mono"
    write_machine(os.path.join(folder, "host"), [host.bytes()], about(clock, (at(0), at(end)), "hv", rate=rate),
                  {310: "CPU 0/KVM", 99: "burn"}, {310: 300, 99: 99}, [stats(n)])
    write_machine(os.path.join(folder, "guest-web"), [guest.bytes()],
                  about(clock, (at(0, True), at(end, True)), "web", 7_000_000, rate if guest_rate else None),
                  {7: "swish", 8: "job"}, {7: 7, 8: 7}, [stats(m)])
    with open(os.path.join(folder, "session.yaml"), "w", encoding="utf-8") as f:
        f.write("host:\n  name: hv\n  dir: host\nguests:\n  - name: web\n    dir: guest-web\n    vcpus: {0: 310}\n")
        if tsc:
            f.write(f"    tsc: {{offset: {OFFSET}, ratio: 1, bits: 0}}\n")
        f.write("    facts:\n      through: ssh:web\n")
    return n, m


def clock_of(folder, *options):
    p = run("sync", folder, "--format", "csv", *options)
    return next(csv.DictReader(io.StringIO(p.stdout))), p.stderr


def clock_error(row):
    """Returns the error of the clock at its reference point, ns: the guest's wall clock is 7 ms later."""
    return int(row["ref_host_ns"]) - int(row["ref_guest_ns"]) + 7_000_000


def check_tsc(tmp):
    folder = os.path.join(tmp, "tsc")
    n, m = make(folder)
    row, message = clock_of(folder)
    check(row["method"] == "tsc" and row["quality"] == "ACCURATE", f"the clock comes from the TSC {row}")
    check(abs(clock_error(row)) <= 1, f"and is correct to the ns ({clock_error(row)})")
    check(float(row["containment"]) == 1.0 and message == "", f"all events are in guest mode {message}")
    traces = document(folder)["traces"]
    check([t["events"] for t in traces] == [n, m], f"all events are read {traces}")
    check(all(t["tracer"] == "stealscope record" for t in traces), "the tracer is recorded")
    errors = {t["hostname"]: t["realtime_error_ns"] for t in traces}
    check(errors["web"] == 5000 and all(e >= 20_000_000 for name, e in errors.items() if name != "web"),
          f"the error of the real time is recorded, or that of date(1) assumed {errors}")
    row, _ = clock_of(folder, "--sync", "containment")
    check(row["method"] == "containment" and abs(clock_error(row)) < 100_000,
          f"containment gives nearly the same ({clock_error(row)} ns)")
    check(("web", "host") in [(r["victim"], r["culprit"]) for r in table("steal", folder)], "web lost time to the host")
    check("host/99" in run("explain", folder, "web/CPU0").stdout, "and the thread is named")


def check_main_thread(tmp):
    """The process of a VM has the name of its main thread in saved_cmdlines; no event has it if that thread only sleeps."""
    folder = os.path.join(tmp, "main")
    make(folder)
    check([r["host_comm"] for r in table("info", folder)] == [""], "the name of the process is unknown")
    with open(f"{folder}/host/saved_cmdlines", "r+", encoding="utf-8") as f:
        names = f.read()
        for text, want in ((names + "300 qemu: a\n", "qemu: a"), (f"3000 no\n{names}300 kvm\n30 no", "kvm"), ("300 kvm", "kvm"),
                           ("300\n", ""), ("\n300 \x1b", "\\e"), (names + "99 300 no", "")):
            f.seek(0)
            f.truncate()
            f.write(text)
            f.flush()
            check([r["host_comm"] for r in table("info", folder)] == [want], f"its name is {want!r}")


def check_contradicted(tmp):
    folder = os.path.join(tmp, "moved")
    make(folder, shift=HZ // 50)
    row, message = clock_of(folder, "--sync", "tsc")
    check(row["method"] == "containment", f"a TSC that contradicts the events is not used {row}")
    check("web: " in message and "TSC" in message, f"and a note reports it: {message}")
    folder = os.path.join(tmp, "rateless")
    make(folder, guest_rate=False)
    row, message = clock_of(folder, "--sync", "tsc")
    check(row["method"] == "containment" and "web: " in message and "TSC" in message, f"without a rate: {row} {message}")


def audit(folder, status=0):
    p = run("sync", "--audit", folder, "--format", "csv", status=status)
    return next(csv.DictReader(io.StringIO(p.stdout))), p.stderr


def check_audit(tmp):
    folder = os.path.join(tmp, "tsc")
    row, _ = audit(folder)
    check(row["made_by"] == "TSC" and row["verdict"] == "holds" and row["outside"] == "0", f"audit: the TSC {row}")
    answer = json.loads(run("sync", "--audit", folder, "--format", "json").stdout)
    check(answer["answer"] == "sync-audit" and not list(faults(answer, load(), load())), "its json conforms to the schema")
    row, message = audit(os.path.join(tmp, "moved"), 3)
    check(row["made_by"] == "TSC" and row["verdict"] == "refuted" and float(row["outside_share"]) > 0.2,
          f"audit: a wrong TSC offset {row}")
    check("web: " in message and "clock" in message, f"and a message for the status {message}")
    session = os.path.join(tmp, "moved", "session.yaml")
    exact = -7_000_000  # difference of the wall clocks that both sides recorded at their start
    for offset, verdict, status in ((exact, "holds", 0), (exact + 40_000_000, "refuted", 3)):
        edit(session, lambda d, o=offset: re.sub(rb"(?m)^    (offset|tsc): .*$", b"    offset: %d ns" % o, d))
        row, _ = audit(os.path.join(tmp, "moved"), status)
        check(row["made_by"] == "session" and row["verdict"] == verdict, f"audit: an offset {row}")
    recorded = os.path.join(SHARED, "fibonacci_tca")
    if os.path.isdir(recorded):
        row, _ = audit(recorded, None)
        check(row["made_by"] == "trace-cmd" and int(row["events"]) > 5000, f"audit: trace-cmd's correction {row}")
    check("--audit" in run("sync", "--audit", "--sync", "auto", folder, status=1).stderr, "--audit does not estimate clocks")


def check_mono(tmp):
    folder = os.path.join(tmp, "mono")
    make(folder, tsc=False)
    row, _ = clock_of(folder)
    check(row["method"] == "containment" and abs(clock_error(row)) < 100_000, f"mono is ns since the epoch ({clock_error(row)} ns)")
    check(BEGIN <= int(row["ref_host_ns"]) < BEGIN + SECONDS * 10**9, "of the time of the recording")


def check_flight(tmp):
    """Of overwritten buffers only the last seconds are read (member kept of about.yaml, ns)."""
    folder = os.path.join(tmp, "kept")
    make(folder)
    for machine in ("host", "guest-web"):
        edit(os.path.join(folder, machine, "about.yaml"), lambda d: d + b"kept: 2000000000\n")
        edit(os.path.join(folder, machine, "stats", "cpu0"), lambda d: d.replace(b"overrun: 0", b"overrun: 9", 1))
    found = document(folder)
    begin = BEGIN + (SECONDS - 2) * 10**9
    check(begin <= found["begin"] < begin + 10**7, f"older events are left out: {found['begin'] - begin}")
    codes = {n["code"] for n in found["notes"]} - {"no-scheduler-events"}
    check(found["traces"][0]["lost"] == 0 and not codes, f"without counting as lost {found['notes']}")
    check(found["sync"][0]["method"] == "tsc" and found["sync"][0]["containment"] == 1, "the clock is correct")


def edit(path, change):
    with open(path, "rb") as f:
        data = f.read()
    with open(path, "wb") as f:
        f.write(change(data))


def check_damage(tmp):
    whole = os.path.join(tmp, "whole")
    make(whole)
    pages = os.path.join("host", "pages", "cpu0")
    cases = [
        ("a truncated last page", pages, lambda d: d[:-100], "truncated"),
        ("a missing page", pages, lambda d: d[:-PAGE], "counters"),
        ("a length beyond the page", pages, lambda d: d[:PAGE + 8] + b"\xff\xff" + d[PAGE + 10:], "page"),
        ("an event longer than the page", pages, lambda d: d[:PAGE + HEAD] + b"\0\0\0\0\xff\xff\xff\x7f" +
         d[PAGE + HEAD + 8:], "page"),
        ("an impossible time", pages, lambda d: d[:2 * PAGE + 7] + b"\x7f" + d[2 * PAGE + 8:], "time"),
        ("a page of ones only", pages, lambda d: d[:PAGE] + b"\xff" * PAGE + d[2 * PAGE:], "page"),
    ]
    for damage, name, change, expected in cases:
        folder = os.path.join(tmp, "damaged")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        edit(os.path.join(folder, name), change)
        p = run("sync", folder, "--format", "csv", status=None)
        check(p.returncode == 0 and expected in p.stderr, f"{damage}: {p.returncode} {p.stderr}")
        check({n["kind"] for n in notes("info", folder)} & {"damage", "loss"}, "a note about it")


def check_damaged_guest(tmp):
    """A guest with a damaged description is skipped with a note; a repaired copy of it is read again."""
    folder = os.path.join(tmp, "damaged-guest")
    shutil.copytree(os.path.join(tmp, "whole"), folder)
    events = {t["machine"]: t["events"] for t in document(folder)["traces"]}
    about_file = os.path.join(folder, "guest-web", "about.yaml")
    with open(about_file, "rb") as f:
        whole = f.read()
    for text in (b"", whole[:-2] + b"-1\n", whole + b"lost: [", whole.replace(b"x86-tsc", b"quartz")):
        edit(about_file, lambda d, t=text: t)
        check({t["machine"]: t["events"] for t in document(folder)["traces"]} == {"hv": events["hv"]}, "the host is read")
        check([n["kind"] for n in notes("info", folder) if n["code"] == "trace-skipped"] == ["damage"], "a note about the guest")
        check({r["vm"] for r in document(folder)["rows"]} == {"web"}, "the host's part of the guest is known")
    check("about.yaml" in run("index", os.path.join(folder, "session.yaml"), "-o", folder + ".steal", status=2).stderr,
          "a named session file requires all its machines")
    edit(about_file, lambda d: whole)
    check({t["machine"]: t["events"] for t in document(folder)["traces"]} == events, "the repaired guest is read")
    edit(about_file, lambda d: b"")
    edit(os.path.join(folder, "host", "about.yaml"), lambda d: b"")
    check("host/about.yaml" in run("index", folder, status=2).stderr, "a recording without a readable host")
    edit(os.path.join(folder, "session.yaml"), lambda d: b"guests:\n" + 2 * b"- name: web\n  dir: guest-web\n")
    p = run("index", folder, status=2)
    check("none of the traces can be read" in p.stderr and p.stderr.count("\n") == 1, f"no guest is readable: {p.stderr}")


def check_refusals(tmp):
    whole = os.path.join(tmp, "whole")
    cases = [
        ("about.yaml", lambda d: b"", "about.yaml"),
        ("about.yaml", lambda d: d.replace(b"x86-tsc", b"quartz"), "'quartz'"),
        ("about.yaml", lambda d: b"clock: x86-tsc\n", "rate"),
        ("about.yaml", lambda d: d.replace(b"started: {clock: ", b"started: {clock: 9"), "begins"),
        ("header_page", lambda d: d.replace(b"offset:8", b"offset:4"), "unknown format"),
        ("header_page", lambda d: d.replace(b"size:4080", b"size:0"), "unknown format"),
    ]
    for name, change, expected in cases:
        folder = os.path.join(tmp, "refused")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        edit(os.path.join(folder, "host", name), change)
        p = run("index", folder, status=2)
        check(expected in p.stderr and p.stderr.count("\n") == 1, f"{expected}: {p.stderr}")
        check(not os.path.exists(os.path.join(folder, "stealscope.steal")), "no history is left")
    folder = os.path.join(tmp, "pageless")
    shutil.copytree(whole, folder)
    shutil.rmtree(os.path.join(folder, "host", "pages"))
    check("pages" in run("index", folder, status=2).stderr, "a recording without pages")


def main():
    with scratch() as tmp:
        make(os.path.join(tmp, "tried"))
        if "without libtraceevent" in run("sync", os.path.join(tmp, "tried"), status=None).stderr:
            skip("this build has no libtraceevent")
        check_tsc(tmp)
        check_main_thread(tmp)
        check_contradicted(tmp)
        check_audit(tmp)
        check_mono(tmp)
        check_flight(tmp)
        check_damage(tmp)
        check_damaged_guest(tmp)
        check_refusals(tmp)
    return 0


if __name__ == "__main__":
    sys.exit(main())
