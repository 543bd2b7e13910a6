"""X in a pane writes what its command prints, byte for byte: all panes, in each format, on simulated and real recordings."""
import os
import re
import shutil

from e2e import DATA, SHARED, check, run, scratch, simulate, skip, table

FORMATS = ("txt", "csv", "json")
RECORDINGS = ("fibonacci", "lockholder", "disk", "pair", "tenant_hog", "xen_cap", "throttled", "soroban_contended")


def exported(folder, history, target, keys, name):
    """Returns the files that the pane of the keys writes, by format; None: the pane does not open there."""
    files = {f: os.path.join(folder, f"{name}.{f}") for f in FORMATS}
    script = os.path.join(folder, "script")
    with open(script, "w", encoding="utf-8") as f:
        f.write(f":{target}\n{keys}\n" + "".join(f":export {file}!\n" for file in files.values()))
    p = run("view", history, "--fresh", "--script", script, "--size", "80x24", status=None, env={"XDG_STATE_HOME": folder})
    if p.returncode:
        return None
    out = {}
    for form, file in files.items():
        with open(file, encoding="utf-8") as f:
            out[form] = f.read()
    return out


def compare_events(folder):
    """Events are read from the traces; a diff is of two histories."""
    traces = os.path.join(folder, "fibonacci")
    shutil.copytree(os.path.join(DATA, "fibonacci"), traces)
    row = table("threads", traces, "--top", "1")[0]
    for target in (row["machine"], f"{row['machine']}/{row['tid']}"):
        files = exported(folder, traces, target, ":50%\nkey e", "events")
        for form in FORMATS:
            options = [] if form == "txt" else ["--format", form]
            printed = run("events", traces, target, "--at", "50%", *options).stdout
            check(files[form] == printed, f"events {target}: {form}, {len(printed)} bytes")
    for one, other in ((f"{folder}/overcommit.steal", f"{folder}/chain.steal"), (f"{folder}/data.steal", f"{folder}/data.steal")):
        files = exported(folder, one, "50%", f":diff {other}", "diff")
        for form in FORMATS:
            printed = run("diff", other, one, *([] if form == "txt" else ["--format", form])).stdout
            check(files[form] == printed, f"diff: {form}, {len(printed)} bytes")


def compare_requests(folder, history, name):
    files = exported(folder, history, "50%", "R", "requests")
    for form in FORMATS:
        options = ["--format", form] * (form != "txt") + ["--limit", "0"] * (form == "json")
        printed = run("latency", "requests", history, "--sort", "latency", "--top", "1000", *options).stdout
        check(files[form] == printed, f"{name} requests: {form}, {len(printed)} bytes")


def compare(folder, history, name):
    """Compares all panes of the row that lost most, and of its machine."""
    row = next(iter(table("threads", history, "--top", "1")), None)
    machine = row["machine"] if row else table("summary", history)[0]["target"]
    targets = [machine] + ([f"{machine}/{row['tid']}"] if row else [])
    same = 0
    for target in targets:
        panes = {"P": ("gaps", history, target, "--top", "5000"), "b": ("gaps", history, target, "--locks", "--top", "0"),
                 "E": ("exits", history, target), "B": ("steal", history, "--by", "thread"),
                 "O": ("summary", history), "OoT": ("summary", history, "--sort", "share", "--group", "name")}
        if "/" in target:
            panes |= {"C": ("path", history, target), "Co": ("path", history, target, "--intervals"), "F": ("flow", history, target)}
        for keys, command in panes.items():
            files = exported(folder, history, target, keys, name)
            for form in FORMATS if files else ():
                options = [] if form == "txt" else ["--format", form]
                if form == "json":
                    options += ["--limit", "0"]
                if keys == "C" and form != "txt":
                    options.append("--sums")
                printed = run(*command, *options).stdout
                if command[0] == "gaps":  # a hint, not the answer
                    printed = re.sub(r"Longest: [^(]*\(stealscope view [^)]*\)\.\n", "", printed)
                check(files[form] == printed, f"{name} {target} {keys}: {form}, {len(printed)} bytes")
                same += 1
    return same


with scratch() as scratch_folder:
    count = 0
    for name in ("overcommit", "chain"):
        traces, history = os.path.join(scratch_folder, name), os.path.join(scratch_folder, f"{name}.steal")
        simulate(traces, name, *(("4",) if name == "overcommit" else ()), "--duration", "1s")
        run("index", traces, "-o", history)
        count += compare(scratch_folder, history, name)
    history = os.path.join(scratch_folder, "data.steal")
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    count += compare(scratch_folder, history, "data")
    check(count > 40, f"{count} files")
    simulate(os.path.join(scratch_folder, "requests"), "requests", "--duration", "2s")
    history = os.path.join(scratch_folder, "requests.steal")
    run("index", os.path.join(scratch_folder, "requests"), "-o", history)
    compare_requests(scratch_folder, history, "requests")
    compare_events(scratch_folder)
    if not os.path.isdir(SHARED):
        skip(f"no recordings in {SHARED}: only simulated and bundled ones")
    for name in RECORDINGS:
        history = os.path.join(scratch_folder, f"{name}.steal")
        run("index", os.path.join(SHARED, name), "-o", history)
        compare(scratch_folder, history, name)
        if name.startswith("soroban"):
            compare_requests(scratch_folder, history, name)
