"""Names from traces are hostile: what is shown tells a backslash from an escape, and no spreadsheet computes it."""
import json
import os
import shutil
import subprocess

from e2e import DATA, PROGRAM, check, on_terminal, rename, run, scratch, table

NAME = b'=\\e\x1b,"'              # as long as burnP6
SHOWN = '=\\\\e\\e,"'
CSV = "\\x3d" + SHOWN[1:]

with scratch() as folder:
    traces, history = f"{folder}/fibonacci", f"{folder}/names.steal"
    shutil.copytree(os.path.join(DATA, "fibonacci"), traces, copy_function=shutil.copyfile)
    rename(traces, NAME)
    run("index", traces, "-o", history)

    flow = table("flow", history, "Debian/151")
    check(CSV in [row["name"] for row in flow], "csv: no formula, a backslash is no escape")
    check({row["tid"] for row in flow if row["name"] == CSV} == {"216"}, "and it is the one that it was")
    rows = json.loads(run("flow", history, "Debian/151", "--format", "json").stdout)["rows"]
    check(SHOWN in [row["name"] for row in rows], "json: nothing computes there")
    for command in (["flow", history, "Debian/151"], ["gaps", history, "Debian/151"], ["steal", history, "--by", "thread"],
                    ["explain", history, "Debian/151"]):
        text = run(*command).stdout
        check(SHOWN in text and "\x1b" not in text, f"{command[0]}: shown once escaped")
        check("\x1b" not in on_terminal(*command), "and sends the terminal nothing")
    check("host/216 " + SHOWN in [row["thief"] for row in table("steal", history, "--by", "thread")],
          "a text that only contains it is left as it is")
    tid = table("intervals", history, "/Virtual Machines/Debian/CPUs/CPU0/Host Thread")
    check(all(row["value"].lstrip("-").isdigit() for row in tid), "numbers stay numbers")
    p = run("flow", history, "host/\x1b\\e", status=1)
    check("\x1b" not in p.stderr and "host/\\e\\\\e" in p.stderr, "what the user wrote is shown escaped, once")

    # What is not UTF-8 is escaped like the rest: paths, and the names of machines.
    place = os.path.join(os.fsencode(folder), b"n\xffon")
    os.rename(traces, place)
    for base, _, files in os.walk(place):
        if b"metadata" in files and b"guest" in base:
            path = os.path.join(base, b"metadata")
            with open(path, "rb") as f:
                content = f.read()
            check(b'hostname = "Debian"' in content, "the guest has a name")
            with open(path, "wb") as f:
                f.write(content.replace(b'hostname = "Debian"', b'hostname = "Deb\xe4an"'))
    run("index", place, "-o", history)
    p = subprocess.run([PROGRAM, "index", place], capture_output=True, timeout=60)
    check(p.returncode == 0 and p.stdout == place + b"/stealscope.steal\n", f"a script gets the very path: {p.stdout}")
    for file in (history, place):
        info = json.loads(run("info", file, "--format", "json").stdout)
        check([vm["vm"] for vm in info["vms"]] == [r"Deb\xe4an"], "a machine whose name is not UTF-8")
        check(r"n\xffon" in info["files"][0]["path"], "and a folder")
    check(table("gaps", history, b"Deb\xe4an/151")[0]["subject"] == r"Deb\xe4an/151 fibonacci", "it can be asked for")
    script = os.path.join(folder, "script")
    with open(script, "wb") as f:
        f.write(b":offset Deb\xe4an +3us\n")
    p = run("view", place, "--script", script, "--glyphs", "ascii", status=None)
    check(p.returncode in (0, 2) and "Traceback" not in p.stderr, f"a nudge is refused or done: {p.stderr.strip()}")
