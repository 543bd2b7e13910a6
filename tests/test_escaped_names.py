"""Names in traces may be hostile: output distinguishes a backslash from an escape, and contains no spreadsheet formula."""
import collections
import glob
import html
import html.parser
import json
import os
import re
import shutil
import subprocess

from e2e import DATA, PROGRAM, check, document, on_terminal, rename, run, scratch, table

NAME = b'=\\e\x1b,"'              # as long as burnP6
SHOWN = '=\\\\e\\e,"'
CSV = "\\x3d" + SHOWN[1:]
MARKUP = (b"</script><b>", b"<!--<script>", b"]]></svg><b>", b"\"'&<img/x>")


def tags(page):
    """Returns how often a browser sees each element; a script element's text has none."""
    counts = collections.Counter()
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: counts.update([tag])
    parser.feed(page)
    return counts


def check_pages(folder):
    """Names in a page and its pictures are text, also within the data of its script."""
    traces = f"{folder}/markup"
    for name in MARKUP:
        shutil.copytree(os.path.join(DATA, "fibonacci"), traces, copy_function=shutil.copyfile)
        rename(traces, name, b"burnP6" + bytes(len(name) - len("burnP6")))
        guest = f"{name.decode()}<img src>={traces}/guest-Debian"
        run("index", "--host", f"{traces}/host", "--guest", guest, "-o", f"{folder}/markup.steal")
        for command, page in (("ticket", f"{folder}/page.html"), ("picture", f"{folder}/page.svg")):
            run(command, f"{folder}/markup.steal", "-o", page)
            with open(page, encoding="utf-8") as f:
                text = f.read()
            os.unlink(page)
            seen = tags(text)
            check(not seen["img"] and not seen["b"] and seen["script"] == text.count("<script") == text.count("</script"),
                  f"{command}: {name} is text")
            check(name.decode() in html.unescape(text), "and is there")
        shutil.rmtree(traces)

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
    check("host/216 " + SHOWN in [row["culprit"] for row in table("steal", history, "--by", "thread")],
          "a text that only contains it is left as it is")
    tid = table("intervals", history, "/Virtual Machines/Debian/CPUs/CPU0/Host Thread")
    check(all(row["value"].lstrip("-").isdigit() for row in tid), "numbers stay numbers")
    p = run("flow", history, "host/\x1b\\e", status=1)
    check("\x1b" not in p.stderr and "host/\\e\\\\e" in p.stderr, "what the user wrote is shown escaped, once")

    check_pages(folder)

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
    p = subprocess.run([PROGRAM, "index", place], capture_output=True, timeout=300)
    check(p.returncode == 0 and p.stdout == place + b"/stealscope.steal\n", f"a script gets the very path: {p.stdout}")
    for file in (history, place):
        info = json.loads(run("info", file, "--format", "json").stdout)
        check([vm["vm"] for vm in info["vms"]] == [r"Deb\xe4an"], "a machine whose name is not UTF-8")
        check(r"n\xffon" in info["files"][0]["path"], "and a folder")
    check(table("gaps", history, b"Deb\xe4an/151")[0]["target"] == r"Deb\xe4an/151 fibonacci", "it can be asked for")
    script = os.path.join(folder, "script")
    with open(script, "wb") as f:
        f.write(b":offset Deb\xe4an +3us\n")
    p = run("view", place, "--script", script, "--glyphs", "ascii", status=None)
    check(p.returncode == 2 and p.stderr.count("\n") == 1 and "UTF-8" in p.stderr, f"an offset is refused: {p.stderr.strip()}")
    check(json.loads(run("info", place, "--format", "json").stdout)["nudges"] == [], "and not applied")

    # Long names of machines: the thread is readable on the narrowest screen, too.
    screen = f"{folder}/screen"
    with open(script, "w", encoding="utf-8") as f:
        f.write(f"key O\n:screen {screen}\n")
    run("index", f"{DATA}/fibonacci", "--guest", f"web={DATA}/fibonacci/guest-Debian", "-o", history)
    check([t["machine"] for t in document(history)["traces"]] == ["hypervisor", "web"], "what is named in a folder is there once")
    run("index", "--host", f"{DATA}/fibonacci/host", "--guest", f"instance-0000002f={DATA}/fibonacci/guest-Debian", "-o", history)
    run("view", history, "--script", script, "--size", "80x24")
    with open(screen, encoding="utf-8") as f:
        lines = f.read().splitlines()
    check([line for line in lines if line.startswith(" instance-0000002f ")], "a name that fits is whole")
    check([line for line in lines if line.startswith(" ins~2f/151 fibonacci ")], "else TID and name stay")
    check([line for line in lines if line.startswith(" host ") and "ins~2f/151 fib" in line], "of a culprit as well")

    # No text is cut in csv or json, however long; what is too long for a name is refused.
    named = "m" + "x" * 254
    run("index", "--host", f"{DATA}/fibonacci/host", "--guest", f"{named}={DATA}/fibonacci/guest-Debian", "-o", history)
    run("index", "--host", f"{DATA}/fibonacci/host", "--guest", f"{named}y={DATA}/fibonacci/guest-Debian", "-o", history, status=1)
    for command, column in (("steal", "culprit"), ("summary", "target"), ("gaps", "target"), ("exits", "machine")):
        rows = table(command, history)
        check(any(row[column].split("/")[0] == named for row in rows), f"{command}: a long name is whole in csv")
        rows = json.loads(run(command, history, "--format", "json").stdout)["rows"]
        texts = [row[column]["text"] if column == "culprit" else row[column] for row in rows]
        check(any(text.split("/")[0] == named for text in texts), f"{command}: and in json")
    check(any(row["victim"].startswith(f"hypervisor for {named}/") or row["culprit"].startswith(f"hypervisor for {named}/")
              for row in table("steal", history, "--by", "thread")), "with what is said of it")
    place = os.path.join(folder, "p" * 200, "q" * 200, "r" * 200)
    os.makedirs(place)
    shutil.copy(history, f"{place}/x.steal")
    check(json.loads(run("steal", f"{place}/x.steal", "--format", "json").stdout)["history"] == f"{place}/x.steal", "a path is whole")
    run("index", "--host", f"{DATA}/fibonacci/host", "--guest", f"instance-0000002f={DATA}/fibonacci/guest-Debian", "-o", history)
    lines = on_terminal("summary", history, "--top", "4").split("\n")
    check([line for line in lines if line.startswith("ins~2f/151 fibonacci ")] and "~1 fibonacci" not in "\n".join(lines),
          "on a terminal a long machine leaves its thread's TID whole")
    # A process whose main thread has no name in any event: only text has a placeholder.
    shutil.copytree(os.path.join(DATA, "fibonacci"), traces, copy_function=shutil.copyfile)
    rename(traces, bytes(len("qemu:Debian")), b"qemu:Debian")
    run("index", traces, "-o", history)
    text = run("info", history).stdout
    check(re.search(r"  151  \([^)]+\)  sync events", text), text)
    check([row["host_comm"] for row in table("info", history)] == [""], "csv: empty")
    for name in glob.glob(f"{traces}/**/metadata", recursive=True):
        with open(name, "rb") as f:
            text = f.read()
        with open(name, "wb") as f:
            f.write(text.replace(b"pid;", b"pxd;"))
    run("index", traces, "-o", history)
    text = run("info", history).stdout
    check(re.search(r" 154  +\([^)]*PID[^)]*\)  sync events", text), text)
    check([(row["host_pid"], row["host_comm"]) for row in table("info", history)] == [("", "")], "csv: empty")
