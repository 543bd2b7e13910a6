"""The text of `explain` is usable: its commands run as printed, its culprits have names, its warnings are complete."""
import json
import os
import re
import subprocess

from e2e import BUILD, DATA, check, recordings, require_recordings, run, scratch, simulate, slice_of, table

THREADS = 3          # of each recording, those that lost most


def doubts(history, machines):
    notes = json.loads(run("info", history, "--format", "json").stdout)["notes"]
    return [note for note in notes if note["kind"] != "info" and note["machine"] in (None, *machines)]


def one(folder, history):
    """Runs the commands in the directory of the history, like a user who pastes them."""
    run("index", folder, "-o", history)
    place, name = os.path.split(history)
    rows = table("summary", history, "--top", "0")
    subjects = [f"{r['machine']}/{r['tid']}" for r in rows if r["tid"] and r["machine"] != "host" and int(r["lost_ns"])][:THREADS]
    subjects += sorted({f"{r['vm']}/CPU{r['vcpu']}" for r in table("info", history)})
    commands = set()
    with open(os.path.join(place, "keys"), "w", encoding="ascii") as f:
        f.write(":screen screen!\n")
    for subject in subjects:
        p = subprocess.run([os.path.join(BUILD, "stealscope"), "explain", name, subject], cwd=place, capture_output=True,
                           text=True, timeout=300)
        check(p.returncode == 0, f"explain {subject} {p.stderr}")
        text = " ".join(p.stdout.split())
        whole = [d for d in doubts(history, [subject.split("/")[0], "host"]) if d["start"] is None and d["end"] is None]
        missing = [d["text"] for d in whole if d["text"] not in text.split("Confidence:")[1]]
        check(missing == [], f"{subject}: Confidence has the warnings of info {missing}")
        named = re.findall(r"(?:Main delay:|Further delays:|;) (.*?)[:,] [\d.]+ \w+ \(", text.split("Confidence:")[0])
        check(all(who.strip() and "host/0 swapper" not in who for who in named), f"{subject}: everybody has a name {named}")
        advice = text.split("Next: ")[1:]
        check(len(set(advice)) == len(advice), f"{subject}: nothing is advised twice {advice}")
        found = re.findall(r"^.*?\((stealscope .*)\)[.:]?.*$", p.stdout, re.M)
        check(len(found) == p.stdout.count("(stealscope "), f"{subject}: each of {p.stdout.count('(stealscope ')} commands stands in one line")
        commands |= set(found)
    for command in sorted(commands):
        if command.startswith("stealscope view "):  # without a terminal
            command += " --script keys --size 80x24; cat screen"
        p = subprocess.run(["sh", "-c", command], cwd=place, capture_output=True, text=True, timeout=300,
                           env={**os.environ, "PATH": BUILD + ":" + os.environ["PATH"]})
        check(p.returncode == 0 and p.stdout, f"pasted: {command} {p.stderr}")


with scratch() as tmp:
    one(os.path.join(DATA, "fibonacci"), f"{tmp}/it's a history.steal")
    simulate(f"{tmp}/lossy", "overcommit", "3", "--lost", "0.3", "--duration", "1s")
    one(f"{tmp}/lossy", f"{tmp}/lossy.steal")
    simulate(f"{tmp}/nested", "nested", "--duration", "1s")
    one(f"{tmp}/nested", f"{tmp}/nested.steal")
    require_recordings()
    for recording in slice_of(recordings(), 4):
        one(recording, f"{tmp}/{os.path.basename(recording.rstrip('/'))}.steal")
