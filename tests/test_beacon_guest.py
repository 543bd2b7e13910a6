"""The beacon in a real guest: tests/data/beacon is a recording of KVM on an AMD processor by trace-cmd record -A (its
truth.json contains how it was made).  Its hypercalls have number and key, their pairs are found and agree, and the clock
from them is the true one.  Needs libtraceevent."""
import fractions
import json
import os
import shutil

from e2e import DATA, check, codes, run, scratch, skip, table

FOLDER = os.path.join(DATA, "beacon")


def clock_errors(row, truth):
    """Yields the errors of the clock, ns, at the guest's first event and 4 s later."""
    clock, first = truth["vms"]["Debian"]["true_clock"], int(row["ref_guest_ns"])
    for t in (first, first + 4 * 10**9):
        got = int(row["ref_host_ns"]) + (1 + fractions.Fraction(row["alpha_ppm"]) / 10**6) * (t - first)
        true = clock["host_at_begin"] + fractions.Fraction(repr(clock["slope"])) * (t - clock["guest_begin"])
        yield float(got - true)


def check_clock(tmp, truth):
    """The clock from events only, from containment only, and from both: within the error bounds, and with both narrower than
    from events only.  Containment alone cannot exclude a clock step at the ends of the trace."""
    bounds, notes = {}, {}
    for mode, pairs in (("events", 2 * truth["beacon"]["pulses"]), ("containment", None), ("auto", None)):
        row = table("sync", FOLDER, "--sync", mode)[0]
        bounds[mode] = int(row["error_mid_ns"])
        run("index", FOLDER, "--sync", mode, "-o", f"{tmp}/{mode}.steal")
        notes[mode] = any(code.startswith("step-not-excluded") for code in codes("info", f"{tmp}/{mode}.steal"))
        error = max(abs(e) for e in clock_errors(row, truth))
        widest = max(int(row[k]) for k in ("error_start_ns", "error_mid_ns", "error_end_ns"))
        check(row["guest"] == "Debian" and row["rejected"] == "0", f"--sync {mode}: no pair is rejected")
        check(pairs is None or int(row["pairs"]) == pairs, f"--sync {mode}: {row['pairs']} pairs")
        check(error <= widest / 2, f"--sync {mode}: error {error:.0f} ns, error bounds {widest} ns")
        if mode == "auto":
            check(row["method"] == "both" and row["quality"] == "ACCURATE", "both kinds of pairs, ACCURATE")
            check(row["containment"] == "1.000000000" and row["worst_violation_ns"] == "0", "all events contained")
            check(error < 15000, f"error {error:.0f} ns")
    check(max(bounds["auto"], bounds["containment"]) < bounds["events"], f"error bounds {bounds}")
    check(notes == {"events": False, "containment": True, "auto": False}, f"beacons exclude steps at the ends {notes}")


def check_history(tmp, truth):
    history = os.path.join(tmp, "b.steal")
    p = run("index", FOLDER, "-o", history)
    check(p.stderr == "", f"no notes {p.stderr}")
    info = json.loads(run("info", history, "--format", "json").stdout)
    check(sorted(t["machine"] for t in info["traces"]) == ["Debian", "hypervisor"], "the guest is named after its file")
    vcpus = {str(v["vcpu"]): (v["host_tid"], v["evidence"]) for v in info["vms"][0]["vcpus"]}
    want = {n: (tid, "sync events") for n, tid in truth["vms"]["Debian"]["vcpus"].items()}
    check(vcpus == want, f"vCPUs and their threads, matched by the hypercalls: {vcpus}")
    worker, hog = truth["tasks"][0], truth["tasks"][-1]
    rows = [r for r in table("flow", history, f"Debian/{worker['tid']}") if r["machine"] == "host" and r["kind"] == "preempting"]
    check((rows[0]["tid"], rows[0]["name"]) == (str(hog["tid"]), "hog"), f"the hog is the top culprit of worker {worker['tid']}")


def evidence(history, *traces):
    """Returns (VM, vCPU, host TID, evidence for it) of all vCPUs."""
    run("index", *traces, "-o", history)
    vms = json.loads(run("info", history, "--format", "json").stdout)["vms"]
    return {(v["vm"], c["vcpu"], c["host_tid"], c["evidence"]) for v in vms for c in v["vcpus"]}


def check_vcpus(tmp, truth):
    """Without the hypercalls, the threads of vCPUs are those recorded by trace-cmd; the session file takes precedence."""
    history, session = os.path.join(tmp, "v.steal"), os.path.join(tmp, "s.yaml")
    host, guest = os.path.join(FOLDER, "trace.dat"), os.path.join(FOLDER, "trace-Debian.dat")
    tid = truth["vms"]["Debian"]["vcpus"]
    for mode in ("containment", "none"):
        check(evidence(history, FOLDER, "--sync", mode) == {("Debian", int(n), t, "trace-cmd") for n, t in tid.items()},
              f"--sync {mode}: the threads recorded by trace-cmd")
    with open(session, "w", encoding="utf-8") as f:
        f.write(f"host: {{dir: {host}}}\nguests:\n  - {{name: Debian, dir: {guest}, vcpus: {{0: {tid['1']}, 1: {tid['0']}}}}}\n")
    check(evidence(history, session, "--sync", "none") ==
          {("Debian", 0, tid["1"], "session"), ("Debian", 1, tid["0"], "session")}, "the session file takes precedence")
    check(evidence(history, "--host", host) == {(f"VM of TID {tid['0']}", int(n), t, "thread name") for n, t in tid.items()},
          "a host alone, without PIDs: the VM is named after its first thread")


def check_copied(tmp, truth):
    """The traces of host and guest, copied from two machines into one directory."""
    folder = os.path.join(tmp, "copied")
    os.makedirs(os.path.join(folder, "guest-web"))
    shutil.copy(os.path.join(FOLDER, "trace.dat"), os.path.join(folder, "host.dat"))
    shutil.copy(os.path.join(FOLDER, "trace-Debian.dat"), os.path.join(folder, "guest-web", "guest.dat"))
    row = table("sync", folder)[0]
    check(row["guest"] == "web" and max(abs(e) for e in clock_errors(row, truth)) < 15000, "the guest is named after its folder")


def main():
    with scratch() as tmp:
        p = run("index", FOLDER, "-o", os.path.join(tmp, "x.steal"), status=None)
        if p.returncode == 2 and "without libtraceevent" in p.stderr:
            skip("this build has no libtraceevent")
        with open(os.path.join(FOLDER, "truth.json"), encoding="utf-8") as f:
            truth = json.load(f)
        check_clock(tmp, truth)
        check_history(tmp, truth)
        check_vcpus(tmp, truth)
        check_copied(tmp, truth)


main()
