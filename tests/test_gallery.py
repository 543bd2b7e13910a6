"""`make gallery` writes a page, pictures, a recording and figures; the verdicts name the machines and threads that the worlds
contain. A release has what it writes (CONTRIBUTING.md), so doc/ may be older than a colour or a word."""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

from e2e import BUILD, PROGRAM, SOURCE, check, scratch

DOC = os.path.join(SOURCE, "doc")
# Heading -> names in its verdict, from the description of the world.
CAUSES = {
    "A task of the host takes the CPU": ("burnP6", "Debian"),
    "Another VM takes the CPU": ("Debian", "Ubuntu"),
    "Two causes at once": ("burnP6", "Ubuntu"),
    "A CPU quota stops a VM": ("quota", "Debian"),
    "More vCPUs than CPUs": ("12", "8", "4"),
    "A VM inside a VM": ("Outer", "Inner", "burnP6"),
    "Many threads and locks": ("burnP6", "Debian"),
    "A Xen host": ("cap", "Debian"),
}
SVG = "{http://www.w3.org/2000/svg}"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def files(folder):
    return [os.path.join("gallery", name) for name in sorted(os.listdir(os.path.join(folder, "gallery")))]


with scratch() as folder:
    for script, arguments in (("figures.py", [folder]), ("gallery.py", [PROGRAM, os.path.join(BUILD, "stealscope-sim"), folder])):
        p = subprocess.run([sys.executable, os.path.join(DOC, script), *arguments], capture_output=True, text=True, check=False)
        check(p.returncode == 0, f"doc/{script} runs {p.stderr}")
    check(files(folder) == files(DOC), "doc/gallery contains the pictures of all cases, and no others")
    for name in files(folder):
        check(ET.parse(os.path.join(folder, name)).getroot().tag == f"{SVG}svg", f"{name} is a picture")
    page = read(os.path.join(folder, "gallery.md"))
    recording = ET.parse(os.path.join(folder, "recording.svg")).getroot()
    card = [t.text for t in ET.parse(os.path.join(folder, "keys.svg")).getroot().iter(f"{SVG}text")]

verdicts = dict(re.findall(r"^## (.*)$(?:(?!^##)(?:.|\n))*?^- Verdict: (.*)$", page, re.M))
check(sorted(verdicts) == sorted(CAUSES), "the gallery has eight cases, each with a verdict")
for heading, names in CAUSES.items():
    check(all(re.search(rf"\b{n}\b", verdicts[heading]) for n in names), f"{heading}: {verdicts[heading]}")

timed = recording.iter(f"{SVG}animate")
values = {len(a.get("values").split(";")) for a in timed if a.get("dur") == "20s"}
check(values == {10}, "the recording shows ten frames in 20 s")
captions = [t.text for t in recording.iter(f"{SVG}text") if t.get("font-size") == "15"]
check(len(captions) == 10, "each frame has a caption")

keys = read(os.path.join(SOURCE, "src", "ui", "input", "keys.h"))
actions = re.findall(r'^\tX\(ACT_\w+, .*"([^"]*)"\)', keys, re.M)
check(len(actions) > 80 and all(help_text in card for help_text in actions), "the card contains each action of keys.h")
