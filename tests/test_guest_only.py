"""A recording of `record --guest-only` in a KVM guest: stolen time by thread and by slice of 100 ms, against the trace that
its host recorded at the same time (NOTES and truth.json in tests/data/guest_only.tar.xz)."""
import collections
import glob
import json
import os
import re
import shutil
import tarfile

from e2e import DATA, SOURCE, check, joined, notes, run, scratch, skip, table

# The counter shows a gap at the first event after it.  Both ends of a gap are known within the time between two events (at
# most a tick, 4 ms) and the host's own switches.
SHARE, ALLOWED = .03, 5_000_000
OUTSIDE = ("provider", "provider: neighbour")


def content(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def near(a, b, share=SHARE, allowed=ALLOWED):
    return abs(a - b) <= max(share * max(a, b), allowed)


def stolen(history, *window):
    """Returns {TID: ns} that the provider took."""
    total = collections.Counter()
    for r in table("steal", history, "--by", "thread", *window):
        if r["culprit"] in OUTSIDE:
            total[r["victim"].split("/")[1].split(" ")[0]] += int(r["ns"])
    return total


def check_totals(history, truth):
    by_thread = stolen(history)
    for tid, t in truth["threads"].items():
        check(near(by_thread[tid], t["stolen_ns"]),
              f"{t['name']}: the provider took {by_thread[tid]} ns, the host's trace has {t['stolen_ns']}")
    total, delay = sum(by_thread.values()), truth["run_delay_of_the_vcpu_by_schedstat_ns"]
    check(near(total, truth["stolen_ns"], .02, 3e6) and near(total, delay, .02, 3e6),
          f"in all {total} ns; by the host's trace {truth['stolen_ns']}, by its schedstat {delay}")


def check_slices(history, truth):
    size = truth["slice_ns"]
    slices = (truth["last_tsc"] - truth["first_tsc"]) * 10**9 // truth["tsc_hz"] // size
    worst = busy = 0
    for i in range(slices):
        got = stolen(history, "--from", f"+{i * size}ns", "--to", f"+{(i + 1) * size - 1}ns")
        for tid, t in truth["threads"].items():
            want = t["per_slice_ns"].get(str(i), 0)
            busy += want > 2 * ALLOWED
            worst = max(worst, abs(got[tid] - want))
            if not near(got[tid], want):
                check(False, f"{t['name']}, slice {i}: {got[tid]} ns, the host's trace has {want}")
    check(slices == 37 and busy > 10, f"{slices} slices, {busy} with more than {2 * ALLOWED} ns; worst error {worst} ns")


def check_metadata(folder, truth):
    about = content(f"{folder}/guest-Debian/about.yaml")
    check("source: event_probes" in about and "counter: kvm_steal_time" in about, "source and counter are noted")
    frequency = int(re.search(r"millihertz: (\d+)", about)[1]) / 1000
    check(abs(frequency / truth["tsc_hz"] - 1) < 200e-6, f"the guest measured the host's TSC frequency: {frequency} Hz")


def check_answers(history):
    """Path, export and whatif of a guest alone."""
    worker = next(t for t in stolen(history) if "worker" in next(r["target"] for r in table("summary", history)
                                                                 if r["target"].startswith(f"Debian/{t} ")))
    limited = collections.Counter()
    for r in table("path", history, f"Debian/{worker}"):
        if r["kind"] == "limited":
            limited[r["culprit_name"]] += int(r["duration_ns"])
    taken = sum(limited[name] for name in OUTSIDE)
    check(taken == stolen(history)[worker], f"path: the provider took {taken} ns, steal: {stolen(history)[worker]}")
    check("record the host, too" in run("whatif", history, "add CPU", status=2).stderr, "whatif is refused with the reason")
    same = run("diff", history, history, "--format", "csv").stdout
    check("Debian" in same or len(same.splitlines()) == 1, "diff of a guest alone")
    run("export", history, "--to", f"csv:{history}.tables", "--only", "steal_total")


def check_added_fields(recording, tmp):
    """The key and_of_cpu adds fields to the counter, as the offline time of Xen. Classes may lack such fields."""
    with open(os.path.join(SOURCE, "src/trace/layouts/ftrace.yaml"), encoding="utf-8") as f:
        layout = f.read()
    total = {}
    for name in ("offline", "cpu"):
        check("and_of_cpu: offline" in layout, "the shipped layout")
        with open(f"{tmp}/{name}.yaml", "w", encoding="utf-8") as f:
            f.write(layout.replace("and_of_cpu: offline", f"and_of_cpu: {name}"))
        run("index", "--guest", f"Debian={recording}/guest-Debian", "--layout", f"{tmp}/{name}.yaml", "-o", f"{tmp}/{name}.steal")
        total[name] = sum(stolen(f"{tmp}/{name}.steal").values())
    check(total["cpu"] > 1.3 * total["offline"] > 0, f"the same field twice: {total}")


def check_request(recording, history):
    """The request to the provider names the VM by its identity, if it was recorded."""
    check("Our VM Debian lost" in joined(run("explain", history).stdout), "no identity was recorded")
    path = f"{recording}/guest-Debian/about.yaml"
    about = content(path)
    with open(path, "w", encoding="utf-8") as f:
        f.write(about.replace("    vendor: QEMU\n", "    vendor: QEMU\n    uuid: 4c4c4544-0042\n    instance_id: i-0a1b\n"))
    run("index", recording, "-o", history + ".id")
    said = joined(run("explain", history + ".id").stdout)
    check("Our VM Debian (id i-0a1b) lost" in said and "(UTC)" in said, "the instance id")


def check_no_source(recording, history):
    """A recording by --guest-only without a source: no advice to use that option."""
    shutil.rmtree(next(p for p in glob.glob(f"{recording}/guest-Debian/events/stealscope_*")))
    run("index", recording, "-o", history)
    note = notes("summary", history)[0]
    check(note["code"] == "no-steal-source" and "--guest-only" not in note["advice"] + note["text"], f"note: {note}")
    check(joined(run("explain", history, "Debian/CPU0").stdout).startswith("No host trace and no steal clock: "),
          "the first sentence")


with scratch() as tmp:
    with tarfile.open(os.path.join(DATA, "guest_only.tar.xz")) as tar:
        tar.extractall(tmp)
    recording, steal = f"{tmp}/guest_only", f"{tmp}/guest.steal"
    facts = json.loads(content(f"{recording}/truth.json"))
    if "built without" in run("index", recording, "-o", steal, status=None).stderr:
        skip("built without libtraceevent")
    run("index", recording, "-o", steal)
    check_totals(steal, facts)
    check_slices(steal, facts)
    check_metadata(recording, facts)
    said = run("explain", steal, "Debian").stdout
    check("provider" in said and "quota" not in said, "explain blames the provider, and no quota")
    check_answers(steal)
    check_added_fields(recording, tmp)
    check_request(recording, steal)
    check_no_source(recording, f"{tmp}/none.steal")
