"""Libraries that few commands need are loaded on demand: other commands do not load them, and if one cannot be loaded, its
commands print one line and leave no file."""
import json
import os
import re
import tarfile

from e2e import BUILD, DATA, check, run, scratch
from otlp import document


def libraries():
    """Returns {LIBRARY: soname} of those that configure found."""
    with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as f:
        return dict(re.findall(r'-D([A-Z]+)_FILE=\\"([^"\\]+)\\"', re.search(r"^DEFS = .*$", f.read(), re.M).group()))


def write_tables(folder):
    """Writes tables of requests without and with a load that makes them slower."""
    for name, slower in (("base", 0), ("loaded", 3)):
        with open(f"{folder}/{name}.csv", "w", encoding="ascii") as f:
            f.write("latency_ns,load\n" + "".join(f"{1000 + 7 * i % 50 + slower * i},{slower * i}\n" for i in range(40)))


with scratch() as folder:
    history = f"{folder}/fibonacci.steal"
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    write_tables(folder)
    train = ["latency", "train", "--csv", "-b", f"{folder}/base.csv", f"{folder}/loaded.csv", "-o", f"{folder}/out/model"]
    spans = f"{folder}/spans.json"
    with open(spans, "w", encoding="ascii") as f:
        json.dump(document([(1, 1795152643676842, 1795152643726837, 151)]), f)
    packed = f"{folder}/packed.tar.gz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(os.path.join(DATA, "fibonacci"), "fibonacci")
    needs = {"LAPACK": [train], "NLOPT": [train], "LIBARCHIVE": [["info", packed]],
             "SQLITE": [["export", history, "--to", f"sqlite:{folder}/out/db"], ["fleet", f"sqlite:{folder}/made.db", "victims"]],
             "POSTGRES": [["export", history, "--to", "postgresql://me:s3cret@127.0.0.1:1/d"],
                          ["fleet", "postgresql://me:s3cret@127.0.0.1:1/d", "victims"]],
             "CURL": [["export", history, "--to", "clickhouse://127.0.0.1:1/d"],
                      ["export", history, "--to", "otlp+http://127.0.0.1:1", "--spans", spans],
                      ["fleet", "clickhouse://127.0.0.1:1/d", "victims"]]}
    found = libraries()
    check(found.keys() >= {"LAPACK", "NLOPT"} and found.keys() <= needs.keys(), f"configure found {found}")
    os.mkdir(f"{folder}/out")
    if "SQLITE" in found:
        run("export", history, "--to", f"sqlite:{folder}/made.db")

    loaded = run("info", history, env={"LD_TRACE_LOADED_OBJECTS": "1"}).stdout
    check("libc.so" in loaded and not [x for x in found.values() if x in loaded], "info loads none of them")
    for library, file in found.items():
        os.mkdir(f"{folder}/{library}")
        open(f"{folder}/{library}/{file}", "w", encoding="ascii").close()
        for words in needs[library]:
            p = run(*words, status=4, env={"LD_LIBRARY_PATH": f"{folder}/{library}"})
            check(p.stderr.count("\n") == 1 and file in p.stderr and "(install " in p.stderr and "s3cret" not in p.stderr,
                  f"{words[0]}, {library}: {p.stderr.strip()}")
            check(os.listdir(f"{folder}/out") == [], "no file is left")
    run(*train)
    check(os.listdir(f"{folder}/out") == ["model"], "with the libraries the command succeeds")
