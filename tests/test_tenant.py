"""Guests without a host trace: stolen time by the guest's steal clock against the truth from the host's trace, and the
note of guests that recorded no steal clock."""
import glob
import json
import os
import re
import subprocess

from e2e import PROGRAM, SHARED, check, require_recordings, run, scratch, table

require_recordings()
directory = scratch()


def provider(rows, victim):
    return sum(int(r["ns"]) for r in rows if r["victim"].startswith(victim) and r["culprit"].startswith("provider"))


def kind(rows, word):
    return sum(int(r["ns"]) for r in rows if r["culprit"] == "provider: " + word)


def check_uncertain(name, history):
    """Without a source, a guest's thread that was current, or an idle vCPU, is one of two possible culprits."""
    for r in table("steal", history, "--by", "thread"):
        check(r["culprit"].endswith(" or provider") or r["culprit"] == "unknown", f"{name}: culprit {r['culprit']}")
    threads = [r for r in table("summary", history) if re.match(r"\w+/[1-9]", r["target"])]
    for r in threads[:2]:
        target = r["target"].split(" ")[0]
        kinds = {f["kind"] for f in table("flow", history, target)}
        check("current" in kinds and kinds <= {"running", "waiting", "unknown", "current"}, f"{name}: {target}: {kinds}")
        kinds = {p["kind"] for p in table("path", history, target)}
        check(not kinds & {"preempting", "idle-cpu", "limited", "hypervisor"}, f"{name}: path of {target}: {kinds}")
        names = {g["culprit_name"] for g in table("gaps", history, target)}
        check(all(n.endswith(" or provider") for n in names), f"{name}: gaps of {target}: {names}")
    for lock in table("gaps", history, "--locks"):
        check(lock["culprit_name"] == "" or lock["culprit_name"].endswith(" or provider"), f"{name}: lock {lock}")
    for request in table("latency", "requests", history) if "soroban" in name else []:
        low, high, latency = (int(request[c]) for c in ("provider_low_ns", "provider_high_ns", "latency_ns"))
        check(low == 0 and high >= 0.9 * latency, f"{name}: request of {latency} ns, provider {low} .. {high} ns")


for path in sorted(glob.glob(os.path.join(SHARED, "tenant_*", "truth.json"))):
    recording = os.path.dirname(path)
    name = os.path.basename(recording)
    truth = json.load(open(path))
    history = os.path.join(directory.name, name + ".steal")
    run("index", "--guest", "Debian=" + os.path.join(recording, "guest-Debian"), "-o", history)
    threads = truth["threads"].values()
    # The counter is the reference of the sum: the truth from the host's trace differs from the kernel's own accounting.
    counted = sum(c["sum_counter_ms"] * 1e6 for v, c in truth["counter_check"].items() if "eprobe" in v)
    paused = sum(t["total_ns"]["pause"] for t in threads)
    quota = sum(t["total_ns"]["quota"] for t in threads)
    rows = table("steal", history)
    visible = paused if kind(rows, "pause") else 0
    check(abs(provider(rows, "Debian") - counted - visible) <= max(0.02 * (counted + visible), 3e6),
          f"{name}: the provider took {provider(rows, 'Debian') / 1e6:.1f} ms, truth {(counted + visible) / 1e6:.1f}")
    by_thread = table("steal", history, "--by", "thread")
    for tid in truth["work"]:
        want = truth["threads"].get(tid, {"counted_by_steal_ns": 0, "total_ns": {"pause": 0}})
        ns = want["counted_by_steal_ns"] + (want["total_ns"]["pause"] if visible else 0)
        got = provider(by_thread, f"Debian/{tid}")
        check(abs(got - ns) <= max(0.045 * ns, 5e6), f"{name}: thread {tid} lost {got / 1e6:.1f} ms, truth {ns / 1e6:.1f}")
    neighbour = sum(t["total_ns"]["neighbour"] for t in threads)
    check(kind(rows, "quota") <= 1.05 * quota + 40e6 and kind(rows, "quota") >= 0.9 * quota, f"{name}: quota")
    check(kind(rows, "neighbour") <= 1.05 * neighbour + 5e6, f"{name}: neighbour")
    check(not kind(rows, "migration"), f"{name}: no migration")
    clock_runs_on = "mono" not in name
    check(bool(kind(rows, "pause")) == (paused > 2e8 and clock_runs_on), f"{name}: pause")
    check("no steal clock" not in run("explain", history).stdout, f"{name}: has a steal clock")

for guest in sorted(glob.glob(os.path.join(SHARED, "*", "guest-Debian"))):
    name = os.path.basename(os.path.dirname(guest))
    if name.startswith("tenant_") or name in ("big",):
        continue
    history = os.path.join(directory.name, name + ".steal")
    p = subprocess.run([PROGRAM, "index", "--guest", "Debian=" + guest, "-o", history], capture_output=True, text=True)
    if p.returncode:
        check(p.returncode == 2 and "frequency" in p.stderr, f"{name}: refused: {p.stderr.strip()[-100:]}")
        continue
    text = " ".join(run("explain", history).stdout.split())
    check(text.startswith("verdict: no host trace and no steal clock: time taken by the host is invisible here and counts as running") and
          text[text.find("note "):].startswith("note No host trace and no steal clock: time taken by the host is invisible"),
          f"{name}: the first sentence")
    check_uncertain(name, history)
