"""The verdict, the first line of `summary` and of `explain` without a target: one sentence on the largest delay.  It must name
the planted cause, and none in a quiet world."""
import json
import os
import re
import subprocess

from e2e import BUILD, DATA, SHARED, check, is_sanitized, joined, require_recordings, run, scratch, table

WORLDS = {  # arguments of stealscope-sim: (kind, regular expression for the sentence)
    "pulse": ("healthy", "healthy: nothing lost more than 5 %"),
    "planted --plant none": ("healthy", "healthy"),
    "planted --plant slow": ("healthy", "healthy"),  # the service itself is slower: nothing is taken from it
    "fibonacci": ("culprit", r"host/\d+ burnP6 took \S+ m?s of Debian \(50 % of the time it wanted to run\)"),
    "planted --plant vm": ("culprit", r"Debian .*took \S+ m?s of Ubuntu"),
    "planted --plant crowd": ("culprit", r"host/\d+ burnP6 took \S+ m?s of Debian"),
    "planted --plant quota": ("limit", r"a CPU quota \(cpu.max\) throttled Debian for "),
    "overcommit 12": ("overcommitted", r"overcommitted: \d+ vCPUs of 12 VMs on 4 CPUs; .* spread over \d+ VMs"),
    "chain": ("culprit", r"2 burnP6 of host took \S+ m?s of Debian"),
}
RECORDINGS = {  # by the notes beside each recording
    "fibonacci": ("culprit", r"host/216 burnP6 took 2\.69 s of Debian \(47 % of the time it wanted to run\)"),
    "pulse": ("vm-exits", "VM exits of Debian"),  # 6 % and 9 % of the time that the VM wanted: more than the limit
    "soroban_base": ("vm-exits", "VM exits of Debian"),
    "soroban_contended": ("culprit", r"host/215 burnP6 took .* of Debian .*; host/215 burnP6 delayed Debian/149 reqserver, for which Debian/151 reqclient waited"),
    "disk": ("chain", r"host/267 rtburst delayed host/153 IO io0, for which Debian/\d+ synio waited"),
    "pair": ("culprit", r"host/306 burnP6 took .* of Ubuntu .*; .* delayed Ubuntu/156 pairserver, for which Debian/156 pairclient waited .*: 4\d\d ms"),
    "lockholder": ("culprit", "2 burnP6 of host took .* of Debian .*; it delayed holders of locks"),
    "throttled": ("limit", r"a CPU quota \(cpu.max\) throttled Debian for 2\.8\d s .*; host/246 burnP6 took 7\d\d ms of Debian"),
    "migrate": ("limit", "Debian was migrated to another process and stood still for 3[56]. ms"),
    "pause": ("limit", "Debian was paused for "),
    "smp": ("culprit", "host/213 burnP6 took .* of Ubuntu"),
    "lost": ("culprit", "host/215 burnP6 took .* of Debian .*; 5[0-9] % of the time of Debian is unknown"),
    "tenant_notick": ("limit", r"the provider took the CPU of Debian for 1\.0[47] s .*, for a neighbour on the same CPU"),
}


def check_moment(history, name, verdict):
    """The gaps of the moment's target in the moment's interval have its culprit."""
    moment = verdict["moment"]
    check((moment is None) == verdict["healthy"], f"{name}: a moment, unless it is healthy")
    if not moment:
        return
    gaps = table("gaps", history, moment["target"], "--from", str(moment["start_ns"]), "--to", str(moment["end_ns"]))
    culprit = re.split("[/ ]", moment["culprit"])[-1]
    check(any(culprit in " ".join(g.values()) for g in gaps), f"{name}: {culprit} has the CPU in the moment of {moment}")


def judge(history, name, kind, pattern):
    answer = json.loads(run("summary", history, "--format", "json").stdout)["verdict"]
    first = joined(run("summary", history).stdout.split("\n\n")[0])
    found = json.loads(run("explain", history, "--format", "json").stdout)["findings"]
    sentences = "; ".join(f["text"] for f in found[:3])
    check(re.match(pattern, sentences), f"{name}: {sentences}")
    check(found[0] == answer, f"{name}: the verdict is the first finding of explain")
    check(answer["kind"] == kind and answer["healthy"] == (kind == "healthy"), f"{name}: kind {kind}")
    check(first.startswith(f"verdict: {answer['text']}."), f"{name}: the first line of summary is the verdict")
    check(joined(run("explain", history).stdout).startswith(first), f"{name}: so is that of explain")
    check_moment(history, name, answer)


def check_spread(history, target, vms):
    """The number of VMs and their share are those of the steal matrix of the target."""
    own = target.split("/", maxsplit=1)[0]
    others = {row["culprit"]: int(row["ns"]) for row in table("steal", history, target)
              if row["culprit"].startswith("vm") and row["culprit"] != own}
    text = joined(run("explain", history, target).stdout)
    said = re.search(r"overcommitted: (\d+) vCPUs of (\d+) VMs on (\d+) CPUs; \S+ lost (\S+ m?s) .*?, spread over (\d+) VMs", text)
    check(said and int(said[5]) == len(others) >= 3, f"explain {target}: {said and said[0]}")
    value, unit = said[4].split()
    ns = float(value) * (1e6 if unit == "ms" else 1e9)
    check(abs(ns - sum(others.values())) <= 0.01 * ns, f"explain {target}: {said[4]} is the sum of {sum(others.values())} ns")
    check(int(said[2]) == vms and int(said[1]) > int(said[3]) == 4, f"explain {target}: overcommitment")


with scratch() as directory:
    for world, (expected, sentence) in WORLDS.items():
        traces = os.path.join(directory, world.replace(" ", "_"))
        subprocess.run([os.path.join(BUILD, "stealscope-sim"), *world.split(), "--duration", "3s", "-o", traces], check=True,
                       capture_output=True)
        run("index", traces, "-o", traces + ".steal")
        judge(traces + ".steal", world, expected, sentence)
        if expected == "overcommitted":
            for number in range(12):
                check_spread(traces + ".steal", f"vm{number:02}/CPU0", 12)
        else:
            check("spread over" not in run("explain", traces + ".steal", "Debian/CPU0").stdout, f"{world}: nothing is spread")
    run("index", os.path.join(DATA, "fibonacci"), "-o", os.path.join(directory, "data.steal"))
    machine = run("summary", os.path.join(directory, "data.steal"), "Debian").stdout
    check("verdict" not in machine, "a summary of one machine has no verdict on all of them")
    for recording, (expected, sentence) in RECORDINGS.items():
        if is_sanitized() or not os.path.isdir(os.path.join(SHARED, recording)):
            continue
        history = os.path.join(directory, recording + ".steal")
        run("index", os.path.join(SHARED, recording), "-o", history)
        judge(history, recording, expected, sentence)
    require_recordings()
