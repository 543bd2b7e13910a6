"""The beacon in a real guest: tests/data/beacon (how it was made is in its truth.json) is a recording of KVM on an AMD
processor by trace-cmd record -A.  Its hypercalls arrive with number and key, pairs are found and agree, and the clock
that they give is the true one.  Needs a stealscope with libtracecmd."""
import fractions
import json
import os
import shutil
import sys

from e2e import DATA, check, run, scratch, table

FOLDER = os.path.join(DATA, "beacon")


def clock_errors(row, truth):
    """How far the clock found is off the true one, in ns, at the guest's first event and 4 s later."""
    clock, first = truth["vms"]["Debian"]["true_clock"], int(row["ref_guest_ns"])
    for t in (first, first + 4 * 10**9):
        got = int(row["ref_host_ns"]) + (1 + fractions.Fraction(row["alpha_ppm"]) / 10**6) * (t - first)
        true = clock["host_at_begin"] + fractions.Fraction(repr(clock["slope"])) * (t - clock["guest_begin"])
        yield float(got - true)


def check_clock(truth):
    """Events alone, containment alone, both: within the band, and both as one needs it: narrower than by the events, and
    told at the ends of the trace, which containment leaves open."""
    band, noted = {}, {}
    for how, pairs in (("events", 2 * truth["beacon"]["pulses"]), ("containment", None), ("auto", None)):
        row = table("sync", FOLDER, "--sync", how)[0]
        band[how] = int(row["band_mid_ns"])
        noted[how] = "if its clock stepped" in run("sync", FOLDER, "--sync", how).stderr
        off = max(abs(e) for e in clock_errors(row, truth))
        widest = max(int(row[k]) for k in ("band_start_ns", "band_mid_ns", "band_end_ns"))
        check(row["guest"] == "Debian" and row["rejected"] == "0", f"--sync {how}: no pair is wrong")
        check(pairs is None or int(row["pairs"]) == pairs, f"--sync {how}: {row['pairs']} pairs")
        check(off <= widest / 2, f"--sync {how}: {off:.0f} ns off the true clock, band {widest} ns")
        if how == "auto":
            check(row["method"] == "both" and row["quality"] == "ACCURATE", "both kinds of pairs, ACCURATE")
            check(row["containment"] == "1.000000000" and row["worst_violation_ns"] == "0", "all events contained")
            check(off < 15000, f"{off:.0f} ns off")
    check(max(band["auto"], band["containment"]) < band["events"], f"bands {band}")
    check(noted == {"events": False, "containment": True, "auto": False}, f"beacons tell the ends {noted}")


def check_history(tmp, truth):
    history = os.path.join(tmp, "b.steal")
    p = run("index", FOLDER, "-o", history)
    check(p.stderr == "", f"nothing to note {p.stderr}")
    info = json.loads(run("info", history, "--format", "json").stdout)
    check(sorted(t["machine"] for t in info["traces"]) == ["Debian", "hypervisor"], "the guest has the name of its file")
    vcpus = {str(v["vcpu"]): (v["host_tid"], v["evidence"]) for v in info["vms"][0]["vcpus"]}
    want = {n: (tid, "sync events") for n, tid in truth["vms"]["Debian"]["vcpus"].items()}
    check(vcpus == want, f"vCPUs and their threads, known by the hypercalls: {vcpus}")
    worker, hog = truth["tasks"][0], truth["tasks"][-1]
    rows = [r for r in table("flow", history, f"Debian/{worker['tid']}") if r["system"] == "host" and r["kind"] == "preempting"]
    check((rows[0]["tid"], rows[0]["name"]) == (str(hog["tid"]), "hog"), f"the hog took most from worker {worker['tid']}")


def evidence(history, *what):
    run("index", *what, "-o", history)
    vms = json.loads(run("info", history, "--format", "json").stdout)["vms"]
    return {(v["vm"], c["vcpu"], c["host_tid"], c["evidence"]) for v in vms for c in v["vcpus"]}


def check_vcpus(tmp, truth):
    """Without the hypercalls it is trace-cmd's word that tells the threads; the user's counts more."""
    history, session = os.path.join(tmp, "v.steal"), os.path.join(tmp, "s.yaml")
    host, guest = os.path.join(FOLDER, "trace.dat"), os.path.join(FOLDER, "trace-Debian.dat")
    tid = truth["vms"]["Debian"]["vcpus"]
    for how in ("containment", "none"):
        check(evidence(history, FOLDER, "--sync", how) == {("Debian", int(n), t, "trace-cmd") for n, t in tid.items()},
              f"--sync {how}: vCPUs as trace-cmd wrote down")
    with open(session, "w", encoding="utf-8") as f:
        f.write(f"host: {{dir: {host}}}\nguests:\n  - {{name: Debian, dir: {guest}, vcpus: {{0: {tid['1']}, 1: {tid['0']}}}}}\n")
    check(evidence(history, session, "--sync", "none") ==
          {("Debian", 0, tid["1"], "session"), ("Debian", 1, tid["0"], "session")}, "the user's word counts more")
    check(evidence(history, "--host", host) == {(f"VM of TID {tid['0']}", int(n), t, "thread name") for n, t in tid.items()},
          "a host alone, without PIDs: the VM is named by its first thread")


def check_apart(tmp, truth):
    """The same as two folders, as an administrator would copy them together."""
    folder = os.path.join(tmp, "apart")
    os.makedirs(os.path.join(folder, "guest-web"))
    shutil.copy(os.path.join(FOLDER, "trace.dat"), os.path.join(folder, "host.dat"))
    shutil.copy(os.path.join(FOLDER, "trace-Debian.dat"), os.path.join(folder, "guest-web", "guest.dat"))
    row = table("sync", folder)[0]
    check(row["guest"] == "web" and max(abs(e) for e in clock_errors(row, truth)) < 15000, "by its folder's name")


def main():
    with scratch() as tmp:
        p = run("index", FOLDER, "-o", os.path.join(tmp, "x.steal"), status=None)
        if p.returncode == 2 and "without libtracecmd" in p.stderr:
            print("this build has no libtracecmd")
            sys.exit(77)
        with open(os.path.join(FOLDER, "truth.json"), encoding="utf-8") as f:
            truth = json.load(f)
        check_clock(truth)
        check_history(tmp, truth)
        check_vcpus(tmp, truth)
        check_apart(tmp, truth)


main()
