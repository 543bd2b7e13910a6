"""Warnings are stored in the history, with their machine and window."""
import json

from e2e import check, run, scratch, simulate

KINDS = {"info", "clock", "loss", "damage", "limit"}

with scratch() as folder:
    simulate(f"{folder}/traces", "overcommit", "2", "--lost", "0.4", "--duration", "2s")
    said = run("index", f"{folder}/traces", "-o", f"{folder}/lost.steal").stderr
    notes = json.loads(run("info", f"{folder}/lost.steal", "--format", "json").stdout)["notes"]
    losses = [n for n in notes if n["kind"] == "loss"]
    check({n["machine"] for n in losses} == {"host", "vm00", "vm01"}, "losses name the machine that lost, the host as host")
    check(all(n["kind"] in KINDS and (n["start"] is None or n["start"] <= n["end"]) for n in notes), "notes have kinds")
    check(all(f"note: {n['machine']}: {n['text']}" in said for n in notes), "index prints them")

    lines = run("info", f"{folder}/lost.steal").stdout.split("\n\n")[-1].splitlines()
    check(max(map(len, lines)) <= 80 and all(f"{n['machine']}: {n['text']}" in " ".join(" ".join(lines).split()) for n in notes),
          "info has all of them, in lines that fit a screen")

    # Reports repeat the warnings on their target, if the format has room for them.
    def doubts(of):
        return [f"{n['machine']}: {n['text']}" for n in losses if n["machine"] in of]

    history = f"{folder}/lost.steal"
    for command, of in ((["gaps", history, "vm00", "--top", "0"], ["vm00", "host"]), (["steal", history], ["host", "vm00", "vm01"]),
                        (["intervals", history, "/Virtual Machines/vm01/CPUs/CPU0/Status"], ["vm01", "host"]),
                        (["explain", history, "vm01/CPU0"], ["vm01", "host"])):
        p = run(*command)
        text = " ".join(p.stdout.split())
        check([d for d in doubts(["host", "vm00", "vm01"]) if d in text] == doubts(of) and p.stderr == "", f"text of {command[0]}")
        if command[0] == "explain":
            continue
        p = run(*command, "--format", "csv")
        check([line.split("; ")[0] for line in p.stderr.splitlines()] == ["stealscope: note: " + d for d in doubts(of)],
              "csv: on the standard error only")
        p = run(*command, "--format", "json")
        notes = [f"{n['machine']}: {n['text']}" for n in json.loads(p.stdout)["notes"]]
        check(notes == doubts(of) and p.stderr == "", "json: in it")
    simulate(f"{folder}/sound", "overcommit", "2", "--duration", "500ms")
    run("index", f"{folder}/sound", "-o", f"{folder}/sound.steal")
    check(not run("steal", f"{folder}/sound.steal").stdout.startswith("note"), "no doubt, no note")

    # The viewer starts with the first warning, in one line; x shows all.  Info notes do not hide the legend.
    def screens(history, *lines):
        with open(f"{folder}/script", "w", encoding="utf-8") as f:
            f.write("\n".join(f":screen {folder}/{i}!\n{line}" for i, line in enumerate(lines)) + f"\n:screen {folder}/last!\n")
        run("view", history, "--script", f"{folder}/script", "--size", "80x120", "--glyphs", "ascii", "--color", "never")
        for name in [*range(len(lines)), "last"]:
            with open(f"{folder}/{name}", encoding="utf-8") as f:
                yield f.read()

    first, details = screens(f"{folder}/lost.steal", "x")
    check(first.endswith(f"\n {doubts(['host', 'vm00', 'vm01'])[0].split(';')[0]} (x: all notes)\n"), first[-81:])
    shown = " ".join(details.split("Notes on the traces")[1].split())
    check(all(d in shown for d in doubts(["host", "vm00", "vm01"])), "x has all notes")
    simulate(f"{folder}/nested", "nested", "--duration", "500ms")
    run("index", f"{folder}/nested", "-o", f"{folder}/nested.steal")
    check("runs inside" in run("info", f"{folder}/nested.steal").stdout, "a fact")
    first, details = screens(f"{folder}/nested.steal", "x")
    check(first.splitlines()[-1].startswith("# run") and "Notes" not in details, first[-81:])
