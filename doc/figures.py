"""Writes doc/keys.svg, a card of the viewer's keys, and doc/vcpu-states.svg, the states of a vCPU in the viewer's colours.

    python3 doc/figures.py [DIRECTORY]

DIRECTORY is doc/ by default. The keys are those of src/ui/input/keys.h, the colours and letters those of the theme
cvd-dark. `make gallery` runs this script."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
ACTION = re.compile(r'^\tX\((\w+), "[^"]*", "((?:[^"\\]|\\.)*)", "([^"]*)", "([^"]*)"\)', re.M)
NIGHT, CHALK, DIM = "#111318", "#d2d2d2", "#8a8a8a"
LINE, COLUMNS, COLUMN_W, KEY_W = 17, 3, 470, 110
# Names of keys on the card.
SHORT = {"<Down>": "↓", "<Up>": "↑", "<Left>": "←", "<Right>": "→",
         "<WheelDown>": "", "<WheelUp>": "", "<WheelLeft>": "", "<WheelRight>": "", "<ZoomIn>": "", "<ZoomOut>": ""}
# state of the theme, name, description, x, y, refinement of the state above it
BOXES = [
    ("running", "RUNNING", "a thread of the guest executes", 50, 90, False),
    ("vmm", "VMM", "the hypervisor works for the vCPU", 420, 90, False),
    ("preempted", "PREEMPTED", "a guest thread waits for the pCPU", 270, 320, False),
    ("host-blocked", "HOST_BLOCKED", "the thread sleeps, the guest is busy", 270, 400, True),
    ("idle", "IDLE", "no thread of the guest wants to run", 590, 320, False),
    ("waking", "WAKING", "idle, woken, waits for a pCPU", 590, 400, True),
]
BOX_W, BOX_H = 270, 66
# number in Figure 5 of the paper, from, to, text, position of the text
ARROWS = [
    (1, (420, 106), (320, 106), "VM entry", (370, 86, "middle")),
    (2, (320, 140), (420, 140), "VM exit", (370, 166, "middle")),
    (5, (450, 156), (450, 320), "scheduled out, guest busy", (432, 244, "end")),
    (6, (490, 320), (490, 156), "scheduled in", (502, 262, "start")),
    (4, (600, 156), (700, 320), "scheduled out, guest idle", (682, 262, "start")),
    (3, (640, 320), (540, 156), "", (0, 0, "start")),
]


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def text(x, y, content, size=13, fill=CHALK, anchor="start", bold=False, mono=False):
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
            f'{" font-weight=" + chr(34) + "bold" + chr(34) if bold else ""}'
            f'{" font-family=" + chr(34) + "monospace" + chr(34) if mono else ""}>{escape(content)}</text>')


def svg(width, height, title, shapes):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'font-family="DejaVu Sans, Arial, sans-serif">\n<title>{title}</title>\n'
            f'<rect width="{width}" height="{height}" fill="{NIGHT}"/>\n' + "\n".join(shapes) + "\n</svg>\n")


def read_sections():
    """Returns the sections of the table of keys: name -> list of (keys, help)."""
    with open(os.path.join(TOP, "src", "ui", "input", "keys.h"), encoding="utf-8") as f:
        source = f.read()
    sections = {}
    for _, keys, section, description in ACTION.findall(source):
        names = [SHORT.get(key, key[1:-1] if len(key) > 1 and key[0] == "<" else key)
                 for key in keys.replace("\\\\", "\\").split()]
        sections.setdefault(section, []).append((" ".join(n for n in names if n), description))
    return sections


def key_card():
    """Arranges the sections in columns of about the same height."""
    sections = read_sections()
    lines = sum(len(rows) + 2 for rows in sections.values())
    shapes = [text(20, 30, "stealscope: keys of the viewer", 18, "#87d7ff", bold=True)]
    column, line, deepest = 0, 0, 0
    for name, rows in sections.items():
        if line and column < COLUMNS - 1 and line + len(rows) / 2 > lines / COLUMNS:
            column, line = column + 1, 0
        x, y = 20 + column * COLUMN_W, 62 + line * LINE
        shapes.append(text(x, y, name, 14, "#ffaf00", bold=True))
        for i, (keys, description) in enumerate(rows, 1):
            shapes.append(text(x, y + i * LINE, keys, 13, "#ffffff", mono=True))
            shapes.append(text(x + KEY_W, y + i * LINE, description, 12))
        line += len(rows) + 2
        deepest = max(deepest, line)
    return svg(20 + COLUMNS * COLUMN_W, 62 + deepest * LINE, "Keys of the viewer", shapes)


def colour(index, default):
    """Returns a colour of the palette of 256 as #rrggbb."""
    if index < 0:
        return default
    if index >= 232:
        return "#" + 3 * f"{8 + 10 * (index - 232):02x}"
    level = (0, 95, 135, 175, 215, 255)
    cube = index - 16
    return f"#{level[cube // 36]:02x}{level[cube // 6 % 6]:02x}{level[cube % 6]:02x}"


def read_theme():
    """Returns the states of the default theme: name -> (letter, foreground, background)."""
    with open(os.path.join(TOP, "themes", "cvd-dark.yaml"), encoding="utf-8") as f:
        source = f.read()
    row = re.compile(r'^  ([\w-]+): +\{label: "[^"]*", *letter: "(.)".*?256: \[(-?\d+), (-?\d+)\]', re.M)
    return {name: (letter, colour(int(fg), CHALK), colour(int(bg), NIGHT)) for name, letter, fg, bg in row.findall(source)}


def state_diagram():
    states = read_theme()
    shapes = ['<defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
              f'<path d="M0 0 L10 5 L0 10 z" fill="{CHALK}"/></marker></defs>']
    for y, height, name in ((20, 170, "the vCPU's thread has a pCPU"), (280, 210, "the vCPU's thread is scheduled out")):
        shapes.append(f'<rect x="20" y="{y}" width="870" height="{height}" rx="10" fill="#1b1f27" stroke="#4a5260"/>')
        shapes.append(text(34, y + 24, name, 14, DIM))
    for state, name, description, x, y, refines in BOXES:
        letter, fg, bg = states[state]
        fg = CHALK if bg == NIGHT else fg   # the theme dims lines, not text
        dash = ' stroke-dasharray="5 4"' if refines else ""
        shapes.append(f'<rect x="{x}" y="{y}" width="{BOX_W}" height="{BOX_H}" rx="8" fill="{bg}" stroke="{CHALK}"{dash}/>')
        shapes.append(text(x + BOX_W / 2, y + 28, f"{letter}  {name}", 15, fg, "middle", bold=True))
        shapes.append(text(x + BOX_W / 2, y + 50, description, 13, fg, "middle"))
    for number, (x1, y1), (x2, y2), label, (tx, ty, anchor) in ARROWS:
        shapes.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{CHALK}" stroke-width="1.5" '
                      'marker-end="url(#a)"/>')
        shapes.append(f'<circle cx="{(x1 + x2) / 2:g}" cy="{(y1 + y2) / 2:g}" r="10" fill="{NIGHT}" stroke="{CHALK}"/>')
        shapes.append(text((x1 + x2) / 2, (y1 + y2) / 2 + 4, str(number), 12, CHALK, "middle"))
        shapes.append(text(tx, ty, label, 13, CHALK, anchor))
    shapes.append(text(20, 514, "Colours and letters: theme cvd-dark. Circles: numbers of the transitions in Figure 5 of "
                       "the paper. Dashed: refinements of the state above.", 12, DIM))
    shapes.append(text(20, 532, "Not shown: UNKNOWN, where events are missing. IDLE also holds in guest mode, while the "
                       "guest runs its idle task.", 12, DIM))
    return svg(910, 545, "States of a virtual CPU and their transitions", shapes)


def make(output):
    for name, content in (("keys.svg", key_card()), ("vcpu-states.svg", state_diagram())):
        with open(os.path.join(output, name), "w", encoding="utf-8") as f:
            f.write(content)


if __name__ == "__main__":
    make(sys.argv[1] if len(sys.argv) > 1 else HERE)
