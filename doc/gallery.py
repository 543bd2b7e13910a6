"""Writes doc/gallery.md and its pictures: eight recordings, with the verdict of the program and the commands.

    python3 doc/gallery.py PROGRAM SIMULATOR [DIRECTORY]

DIRECTORY is doc/ by default. `make gallery` runs this script and figures.py. The recordings are those in tests/data, and
simulated worlds with a fixed seed, so that the same program writes the same files (tests/test_gallery.py)."""
import json
import math
import os
import re
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(HERE), "tests", "data")
CELL_W, CELL_H = 8, 17    # size of a cell in the program's pictures
WINDOW = 5                # length of a picture's window, in lengths of the longest gap
STEP = 2                  # seconds per frame of the animation
FONT = 'font-family="DejaVu Sans, Arial, sans-serif" font-size="13"'

# name, source (arguments of the simulator, or a path below tests/data), rows of the picture, target whose longest gap is
# shown ("": the overview), heading, situation.
CASES = [
    ("fibonacci", "fibonacci", ["Debian/fibonacci"], "Debian/CPU0", "A task of the host takes the CPU",
     "A computation in the VM Debian shares a pCPU with burnP6, a task of the host."),
    ("neighbour", ["planted", "--plant", "vm", "--duration", "3s"], ["Debian", "Ubuntu", "host"], "Debian/CPU0",
     "Another VM takes the CPU", "A compiler in the VM Ubuntu shares a pCPU with a server in the VM Debian."),
    ("disturbed", ["critical_task", "--duration", "4s"], ["Ubuntu", "Debian", "host"], "Ubuntu",
     "Two causes at once", "One task a second in Debian is disturbed by the VM Ubuntu, and both by a task of the host."),
    ("quota", ["planted", "--plant", "quota", "--duration", "3s"], ["Debian", "host"], "Debian/CPU0",
     "A CPU quota stops a VM", "The control group of Debian has a quota (cpu.max); the pCPU is idle while the VM waits."),
    ("overcommit", ["overcommit", "8", "--duration", "2s"], [], "", "More vCPUs than CPUs",
     "Eight VMs with 12 vCPUs run on 4 pCPUs."),
    ("nested", ["nested", "--duration", "2s"], ["Inner", "Outer", "host"], "Inner/CPU0", "A VM inside a VM",
     "Inner runs in a VM of Outer, and each level has a thread that competes for the CPU."),
    ("locks", ["chain", "--duration", "2s"], ["Debian", "host"], "Debian",
     "Many threads and locks", "Threads in two VMs wait for locks, a disk and each other, beside tasks of the host."),
    ("xen", "xen.tar.xz", ["Debian", "Domain-0", "host"], "Debian", "A Xen host",
     "xentrace recorded a Xen host on which the domain Debian has a cap of 40 % of a pCPU."),
]
READING = {
    "": "Each line is a machine or thread, the most delayed first, with its lost time and top culprit.",
    "rows": "The window is five times the longest wait; the pCPU's row shows which VM or task had the CPU in it.",
}
# Notes beside the first picture: text of the line that it points to, and the note.
NOTES = [
    (r" took .* of ", ["The verdict: one sentence", "about the largest delay"]),
    (r"whole trace|^ *trace,", ["Where this window lies in", "the recording"]),
    (r"vCPU0", ["The vCPU: green runs, bright", "waits, with the culprit's name"]),
    (r"^ *\d+ fibonacci", ["The thread: its guest believes", "that it runs all the time"]),
    (r"flow of", ["The execution flow: what had", "the CPU, and for how long"]),
    (r"^ source:", ["Source, confidence and the", "error of the guest's clock"]),
]
# Keys of the animation, and their caption.
KEYS = [
    ("O", "the viewer opens with the overview"),
    ("<Enter>", "Enter: the moment of the verdict"),
    ("<Enter>", "Enter: the execution flow of the thread"),
    ("q", "q: close the flow"),
    ("}", "}: the next gap, zoomed"),
    ("x", "x: details of the interval"),
    ("q", "q: close the details"),
    ("P", "P: all gaps, longest first"),
    ("B", "B: culprits of each victim"),
    ("O", "O: back to the overview"),
]


def run(program, *args, cwd=None):
    p = subprocess.run([program, *args], capture_output=True, text=True, check=False, cwd=cwd,
                       env={**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": "/nonexistent"})
    if p.returncode:
        sys.exit(f"gallery.py: {os.path.basename(program)} {' '.join(args)}: {p.stderr}")
    return p.stdout


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def clock(ns):
    """Returns the time of day, to the microsecond, UTC."""
    us = ns // 1000
    s = us // 10**6
    return f"{s // 3600 % 24:02}:{s // 60 % 60:02}:{s % 60:02}.{us % 10**6:06}"


def build_history(program, simulator, name, source, folder):
    """Indexes the recording as NAME.steal. Returns the commands that a reader types for this."""
    history = os.path.join(folder, name + ".steal")
    if isinstance(source, list):
        traces = os.path.join(folder, name)
        run(simulator, *source, "-o", traces)
        run(program, "index", traces, "-o", history)
        return [f"stealscope-sim {' '.join(source)} -o {name}", f"stealscope index {name} -o {name}.steal"]
    path = os.path.join(DATA, source)
    if not source.endswith(".tar.xz"):
        run(program, "index", path, "-o", history)
        return [f"stealscope index tests/data/{source} -o {name}.steal"]
    with tarfile.open(path) as tar:
        inner = tar.getnames()[0].split("/")[0]
        tar.extractall(os.path.join(folder, name))
    run(program, "index", os.path.join(folder, name, inner), "-o", history)
    return [f"tar xf tests/data/{source}", f"stealscope index {inner} -o {name}.steal"]


def window_of(program, history, target):
    """Returns the options of a window around the longest gap of the target."""
    rows = json.loads(run(program, "gaps", history, target, "--top", "1", "--format", "json"))["rows"]
    start, length = rows[0]["start"], rows[0]["duration_ns"]
    first = start - length * (WINDOW - 1) // 2
    return ["--from", clock(first), "--to", clock(first + WINDOW * length)]


def lines_of(svg):
    """Returns the text of each line of cells of a picture."""
    lines = {}
    for x, y, text in re.findall(r'<text x="(\d+)" y="(\d+)"[^>]*>([^<]*)</text>', svg):
        row, column = int(y) // CELL_H, int(x) // CELL_W
        lines[row] = lines.get(row, "").ljust(column) + text
    return lines


def annotate(svg):
    """Adds notes to the right of a picture, with a line to the row that each describes."""
    width, height = (int(n) for n in re.search(r'width="(\d+)" height="(\d+)"', svg).groups())
    lines, notes, bottom = lines_of(svg), [], 0
    for pattern, note in NOTES:
        row = next((r for r in sorted(lines) if re.search(pattern, lines[r])), None)
        if row is None:
            sys.exit(f"gallery.py: no line of the picture contains '{pattern}'")
        y = row * CELL_H + CELL_H / 2
        top = max(y - 10, bottom)
        bottom = top + 17 * len(note) + 8
        notes.append(f'<path d="M{width - 4} {y:g}L{width + 22} {top + 9:g}" stroke="#ffaf00" fill="none"/>')
        notes += [f'<text x="{width + 28}" y="{top + 13 + 17 * i:g}" fill="#ffffff" {FONT}>{escape(t)}</text>'
                  for i, t in enumerate(note)]
    total, high = width + 250, max(height, math.ceil(bottom))
    size = f'width="{total}" height="{high}"'
    svg = re.sub(r'width="\d+" height="\d+" viewBox="[^"]*"', f'{size} viewBox="0 0 {total} {high}"', svg, count=1)
    svg = re.sub(r'<rect x="0" y="0" width="\d+" height="\d+"', f'<rect x="0" y="0" {size}', svg, count=1)
    return svg.replace("</svg>", "\n".join(notes) + "\n</svg>")


def animate(program, history, folder):
    """Returns an animated SVG: a frame of the viewer per key. A line of cells that several frames share occurs once."""
    script, frames = [], []
    for i, (key, _) in enumerate(KEYS):
        frames.append(os.path.join(folder, f"frame{i}.svg"))
        script += [key, f":screen frame{i}.svg"]
    with open(os.path.join(folder, "keys"), "w", encoding="utf-8") as f:
        f.write("\n".join(script) + "\n")
    run(program, "view", os.path.basename(history), "--script", "keys", "--size", "90x26", "--color", "256",
        "--glyphs", "blocks", cwd=folder)
    rows = {}    # (line of cells, its shapes) -> frames that contain it
    for i, frame in enumerate(frames):
        by_line = {}
        for element in re.findall(r"^<(?:rect|text|path) .*$", read(frame), re.M)[1:]:
            y = float(re.search(r' y="([\d.]+)"|d="M[\d.]+ ([\d.]+)', element).expand(r"\1\2"))
            by_line.setdefault(int(y // CELL_H), []).append(element)
        for line, shapes in by_line.items():
            rows.setdefault((line, "\n".join(shapes)), []).append(i)
    head = re.match(r'<svg [^>]*width="(\d+)" height="(\d+)"', read(frames[0]))
    width, height = (int(n) for n in head.groups())
    total = STEP * len(KEYS)
    size = f'width="{width}" height="{height + 30}"'
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height + 30}" '
           'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13">',
           f"<title>stealscope: {total} s in the viewer</title>", f'<rect {size} fill="#111318"/>']
    captions = {(-1, f'<text x="10" y="{height + 20}" fill="#ffaf00" font-size="15">{escape(text)}</text>'): [i]
                for i, (_, text) in enumerate(KEYS)}
    for (_, shapes), visible in sorted({**rows, **captions}.items(), key=lambda item: item[0][0]):
        values = ";".join("visible" if i in visible else "hidden" for i in range(len(KEYS)))
        change = "" if len(visible) == len(KEYS) else \
            f'<animate attributeName="visibility" dur="{total}s" repeatCount="indefinite" calcMode="discrete" ' \
            f'values="{values}"/>'
        hidden = "" if 0 in visible else ' visibility="hidden"'
        out.append(f"<g{hidden}>{change}\n{shapes}\n</g>")
    return "\n".join(out) + "\n</svg>\n"


def make(program, simulator, output):
    os.makedirs(os.path.join(output, "gallery"), exist_ok=True)
    page = ["# Gallery", "", "Eight recordings, each with the verdict of the program. `make gallery` writes this page and",
            "its pictures: from the recordings in `tests/data/`, and from worlds of the simulator stealscope-sim(1).", "",
            f"[{STEP * len(KEYS)} seconds in the viewer](recording.svg), [all keys](keys.svg), "
            "[states and colours of a vCPU](vcpu-states.svg)"]

    def write(name, text):
        with open(os.path.join(output, name), "w", encoding="utf-8") as f:
            f.write(text)

    with tempfile.TemporaryDirectory(prefix="stealscope-gallery-") as folder:
        for number, (name, source, rows, target, heading, situation) in enumerate(CASES):
            history = os.path.join(folder, name + ".steal")
            commands = build_history(program, simulator, name, source, folder)
            verdict = json.loads(run(program, "summary", history, "--format", "json"))["verdict"]
            options = window_of(program, history, target) if target else []
            picture = os.path.join(folder, name + ".svg")
            run(program, "picture", history, "-o", picture, *rows, *options, "--width", "100")
            svg = read(picture)
            write(f"gallery/{name}.svg", annotate(svg) if number == 0 else svg)
            if number == 0:
                write("recording.svg", animate(program, history, folder))
            commands.append(" ".join(["stealscope picture", f"{name}.steal -o {name}.svg", *rows, *options, "--width 100"]))
            page += ["", f"## {heading}", "", f"![{heading}](gallery/{name}.svg)", "", f"- {situation}",
                     f"- Verdict: {verdict['text']}", f"- {READING['rows' if rows else '']}", "",
                     *("    " + command for command in commands)]
    write("gallery.md", "\n".join(page) + "\n")


if __name__ == "__main__":
    make(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else HERE)
