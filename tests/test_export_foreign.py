"""Perfetto traces, read by protoc."""
import os
import re
import shutil
import subprocess
import sys

from e2e import DATA, SOURCE, check, document, run, scratch, skip


def check_perfetto(folder, history):
    if not shutil.which("protoc"):
        skip("protoc is not installed")
    path = f"{folder}/trace.perfetto"
    run("export", history, "--to", f"perfetto:{path}")
    with open(path, "rb") as f:
        p = subprocess.run(["protoc", "--decode=perfetto.protos.Trace", f"-I{SOURCE}/tests", "perfetto.proto"], stdin=f,
                           capture_output=True, text=True, timeout=300)
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


def main():
    with scratch() as folder:
        history = f"{folder}/x.steal"
        run("index", os.path.join(DATA, "fibonacci"), "-o", history)
        check_perfetto(folder, history)
    return 0


if __name__ == "__main__":
    sys.exit(main())
