"""doc/gallery.md, its pictures, the recording and the figures are the current output of `make gallery`, and the verdicts name
the causes that the worlds contain."""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

from e2e import BUILD, PROGRAM, SOURCE, check, scratch

DOC = os.path.join(SOURCE, "doc")
# Heading -> what its verdict must contain, from the description of the world.
CAUSES = {
    "A task of the host takes the CPU": r"host/216 burnP6 took .* of Debian",
    "Another VM takes the CPU": r"Debian .*took .* of Ubuntu|Ubuntu .*took .* of Debian",
    "Two causes at once": r"burnP6 took .* of Ubuntu .*; Debian .*: ",
    "A CPU quota stops a VM": r"a CPU quota .* throttled Debian",
    "More vCPUs than CPUs": r"overcommitted: 12 vCPUs of 8 VMs on 4 CPUs",
    "A VM inside a VM": r"Outer .*took .* of Inner .*; host/125 burnP6",
    "Many threads and locks": r"burnP6 of host took .* of Debian",
    "A Xen host": r"the cap of its domain throttled Debian",
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
    made = ["gallery.md", "recording.svg", "keys.svg", "vcpu-states.svg", *files(folder)]
    check(files(folder) == files(DOC), "doc/gallery contains the pictures of all cases, and no others")
    for name in made:
        check(read(os.path.join(folder, name)) == read(os.path.join(DOC, name)), f"doc/{name} is what `make gallery` writes")

page = read(os.path.join(DOC, "gallery.md"))
verdicts = dict(re.findall(r"^## (.*)$(?:(?!^##)(?:.|\n))*?^- Verdict: (.*)$", page, re.M))
check(sorted(verdicts) == sorted(CAUSES), "the gallery has eight cases, each with a verdict")
for heading, cause in CAUSES.items():
    check(re.search(cause, verdicts[heading]), f"{heading}: {verdicts[heading]}")

recording = ET.parse(os.path.join(DOC, "recording.svg")).getroot()
timed = recording.iter(f"{SVG}animate")
values = {len(a.get("values").split(";")) for a in timed if a.get("dur") == "20s"}
check(values == {10}, "the recording shows ten frames in 20 s")
captions = [t.text for t in recording.iter(f"{SVG}text") if t.get("font-size") == "15"]
check(len(captions) == 10, "each frame has a caption")

keys = read(os.path.join(SOURCE, "src", "ui", "input", "keys.h"))
card = [t.text for t in ET.parse(os.path.join(DOC, "keys.svg")).getroot().iter(f"{SVG}text")]
actions = re.findall(r'^\tX\(ACT_\w+, .*"([^"]*)"\)', keys, re.M)
check(len(actions) > 80 and all(help_text in card for help_text in actions), "the card contains each action of keys.h")
