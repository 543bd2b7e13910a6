"""Exports read by programs of others: Avro files by the Python package avro, Perfetto traces by protoc."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

import avro_reader
from e2e import DATA, SOURCE, check, document, run, scratch, skip

READ_AVRO = """
import json, sys
from avro.datafile import DataFileReader
from avro.io import DatumReader
for path in sys.argv[1:]:
    with DataFileReader(open(path, "rb"), DatumReader()) as rows:
        print(json.dumps([path, list(rows)]))
"""


def find_avro():
    """Returns a Python that has the package avro; None: there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        if shutil.which(python) and subprocess.run([python, "-c", "import avro.datafile"], capture_output=True).returncode == 0:
            return python
    return None


def check_avro(folder, history):
    python = find_avro()
    if "not in this build" in next(x for x in run("export", "--targets").stdout.split("\n") if x.startswith("avro:")) or not python:
        return "avro: built without libavro, or no Python has the package avro (python3-avro)"
    run("export", history, "--to", f"avro:{folder}/avro")
    files = sorted(glob.glob(f"{folder}/avro/*/*.avro"))
    p = subprocess.run([python, "-c", READ_AVRO, *files], capture_output=True, text=True, timeout=120)
    check(p.returncode == 0, f"avro reads {len(files)} files {p.stderr[-500:]}")
    for path, rows in map(json.loads, p.stdout.splitlines()):
        name = os.path.basename(os.path.dirname(path))
        check(rows == avro_reader.read(path)[1], f"avro: {name}: {len(rows)} equal rows")
    return None


def check_perfetto(folder, history):
    if not shutil.which("protoc"):
        return "perfetto: protoc is not installed"
    path = f"{folder}/trace.perfetto"
    run("export", history, "--to", f"perfetto:{path}")
    with open(path, "rb") as f:
        p = subprocess.run(["protoc", "--decode=perfetto.protos.Trace", f"-I{SOURCE}/tests", "perfetto.proto"], stdin=f,
                           capture_output=True, text=True, timeout=120)
    check(p.returncode == 0 and not p.stderr, f"protoc decodes the trace {p.stderr[-500:]}")
    check(not re.search(r"^\s*\d+(:| \{)", p.stdout, re.M), "each field is in the schema")
    packets = re.split(r"^packet \{\n", p.stdout, flags=re.M)[1:]
    begins, ends = (sum(f"type: TYPE_SLICE_{x}\n" in q for q in packets) for x in ("BEGIN", "END"))
    check(begins == ends > 1000, f"{begins} slices begin and end")
    tracks = set(re.findall(r"^    uuid: (\d+)$", p.stdout, re.M))
    check({*re.findall(r"^    track_uuid: (\d+)$", p.stdout, re.M)} <= tracks, f"each event is on one of {len(tracks)} tracks")
    names = set(re.findall(r'process_name: "(.*)"', p.stdout))
    check(names == {"host"} | {t["machine"] for t in document(history)["traces"] if t["role"] == "guest"}, f"processes: {names}")
    flows, closed = (set(re.findall(rf"^    {x}: (\d+)$", p.stdout, re.M)) for x in ("flow_ids", "terminating_flow_ids"))
    check(flows == closed and flows, f"{len(flows)} flows have both ends")
    return None


def main():
    with scratch() as folder:
        history = f"{folder}/x.steal"
        run("index", os.path.join(DATA, "fibonacci"), "-o", history)
        missing = [why for why in (check_avro(folder, history), check_perfetto(folder, history)) if why]
    if missing:
        skip("; ".join(missing))
    return 0


if __name__ == "__main__":
    sys.exit(main())
