"""Guests choose names freely: in each file that `export` writes they are plain text, whatever bytes they contain."""
import csv
import glob
import json
import os
import re
import shutil
import sqlite3

from e2e import DATA, HOSTILE, check, rename, run, scratch

TARGETS = run("export", "--targets").stdout
HAS_SQLITE = re.search("sqlite:.*not in this build", TARGETS) is None


def export(history, target):
    run("export", history, "--to", target)
    return target.split(":", 1)[1]


def check_tables(folder, history, shown):
    directory = export(history, f"csv:{folder}/csv")
    for path in glob.glob(f"{directory}/*/*"):
        with open(path, "rb") as f:
            content = f.read()
        check(not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", content), f"csv: no control character in {path[len(directory):]}")
        content.decode("utf-8")
        with open(path, newline="", encoding="utf-8") as f:
            rows = list(csv.reader(f))
        check(all(len(r) == len(rows[0]) for r in rows), "all rows have the same number of columns")
        check(not any(re.match(r"[=+@]|-[^0-9]", v) for r in rows for v in r), "no formula")
    path, = glob.glob(f"{directory}/thread/*")
    with open(path, newline="", encoding="utf-8") as f:
        name = next(r["name"] for r in csv.DictReader(f) if (r["machine"], r["tid"]) == ("host", "216"))
    check(name == ("\\x%02x" % ord(shown[0]) + shown[1:] if shown[:1] in ("=", "+", "-", "@") else shown), f"csv: {name}")
    if HAS_SQLITE:
        db = sqlite3.connect(export(history, f"sqlite:{folder}/db"))
        check((shown,) in set(db.execute("SELECT name FROM thread WHERE tid = 216")), f"sqlite: {shown}")
        check(db.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()[0] == 18, "and 18 tables")
        db.close()


def check_files(folder, history, shown):
    with open(export(history, f"folded:{folder}/f"), encoding="utf-8") as f:
        lines = [line.rsplit(" ", 1)[0].split(";") for line in f]
    check({len(x) for x in lines} == {4} and any(shown.replace(";", "\\x3b") in x[3] for x in lines), "folded: a name is one frame")
    with open(export(history, f"perfetto:{folder}/p"), "rb") as f:
        check(shown.encode() in f.read(), "perfetto: the displayed name")
    with open(export(history, f"openmetrics:{folder}/m.prom"), encoding="utf-8") as f:
        wrong = [x for x in f.read().split("\n") if x and not re.fullmatch(
            r'# .*|\w+(\{\w+="([^"\\]|\\[\\"n])*"(,\w+="([^"\\]|\\[\\"n])*")*\})? [0-9.e+-]+', x)]
    check(wrong == [], f"openmetrics: labels are quoted {wrong}")


for hostile in HOSTILE:
    with scratch() as folder:
        shutil.copytree(os.path.join(DATA, "fibonacci"), f"{folder}/traces", copy_function=shutil.copyfile)
        rename(f"{folder}/traces", hostile)
        history = f"{folder}/x.steal"
        run("index", f"{folder}/traces", "-o", history)
        rows = json.loads(run("threads", history, "host", "--format", "json").stdout)["rows"]
        shown = next(r["name"] for r in rows if r["tid"] == 216)
        check(shown.isprintable(), f"{hostile} is shown as {shown}")
        check_tables(folder, history, shown)
        check_files(folder, history, shown)
