"""The timeline of a ticket in a real browser: zoom, drag, hover, links, keys, sizes, print, hostile names."""
import csv
import io
import os
import re
import shutil
import sys

import browser
from e2e import DATA, HOSTILE, check, recording, rename, run, scratch, skip

RANGE = "document.getElementById('timeline-range').textContent"
NOTE = "document.getElementById('timeline-note').textContent"
WIDTH = "document.documentElement.scrollWidth"


def nanoseconds(text):
    """Length of the shown window or range: "shown: 84.2 ms, ..." """
    number, unit = re.search(r": ?([0-9.]+) (ns|us|ms|s),|range ([0-9.]+) (ns|us|ms|s),", text.replace("range ", "range: ")).groups()[:2]
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def lanes(page):
    return page.value("(() => { const r = document.getElementById('lanes').getBoundingClientRect(); return [r.x, r.y, r.width, r.height] })()")


def check_work(page, path):
    page.load(path)
    check(page.value("document.documentElement.className") == "scripted", "the script runs under the page's policy")
    x, y, w, h = lanes(page)
    check(w > 600 and h > 100, f"a timeline of {w} x {h}")
    shown = nanoseconds(page.value(RANGE))
    page.mouse("mouseWheel", x + w / 2, y + 40, deltaX=0, deltaY=-100)
    check(page.until(f"!{RANGE}.includes('{page.value(RANGE)}')") or nanoseconds(page.value(RANGE)) < shown, "the wheel zooms in")
    closer = nanoseconds(page.value(RANGE))
    check(0.7 * shown < closer < 0.9 * shown, f"by a fifth: {shown} -> {closer}")
    page.mouse("mousePressed", x + w / 2, y + 40, button="left", clickCount=1)
    page.mouse("mouseMoved", x + w / 2 + 100, y + 40, button="left", buttons=1)
    page.mouse("mouseReleased", x + w / 2 + 100, y + 40, button="left", clickCount=1)
    check(page.until(f"{RANGE}.startsWith('range')"), "drag measures a range")
    dragged = nanoseconds(page.value(RANGE))
    check(abs(dragged - closer * 100 / (w - 210)) < 0.05 * dragged, f"of 100 pixels: {dragged}")
    page.mouse("mouseMoved", x + w / 2, y + 30)
    check(page.until(f"{NOTE}.includes('Debian/vCPU0')"), f"hover names: {page.value(NOTE)}")
    page.value("document.getElementById('lanes').focus()")
    page.key("Escape")
    page.key("0")
    check(page.until(f"{RANGE}.startsWith('shown: 7.17 s')"), "0 shows all")


def check_sums(page, history):
    """The sums of the whole window are those of `flow`."""
    flow = list(csv.DictReader(io.StringIO(run("flow", history, "Debian/151", "--format", "csv").stdout)))
    rows = page.value("[...document.querySelectorAll('#timeline-sums tr')].map(r => [...r.children].map(c => c.textContent))")
    want = {r["kind"]: int(r["duration_ns"]) / 1e9 for r in reversed(flow)}
    row = next(r for r in rows if r[0] == "Debian/151 fibonacci")
    check(row[1] == f"{want['running']:.2f} s" and row[2].startswith(f"host/216 burnP6 {want['preempting']:.2f} s"), f"{row}")


def check_links(page):
    count = page.value("document.querySelectorAll('a[href^=\"#at=\"]').length")
    check(count >= 10, f"{count} waits are links")
    page.value("document.querySelector('a[href^=\"#at=\"]').click()")
    check(page.until(f"{RANGE}.startsWith('range')"), "a link shows its place")
    length = page.value("Number(/\\+(\\d+)$/.exec(location.hash)[1])")
    check(abs(nanoseconds(page.value(RANGE)) - length) <= 0.01 * length, "with its length")


def check_forms(page, path):
    for width in (390, 1280):
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        page.load(path)
        check(page.value(WIDTH) <= width, f"nothing is wider than {width}")
    page.call("Emulation.setEmulatedMedia", media="print")
    still = "getComputedStyle(document.getElementById('{}')).display"
    check((page.value(still.format("picture")), page.value(still.format("timeline"))) == ("block", "none"), "print has the picture")
    page.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    check(page.value("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)", "dark")
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.load(path)
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    check(page.value(still.format("picture")) == "block", "without script the picture is there")


def check_moment(page, folder):
    """The timeline begins at the verdict's moment, and its victim has a lane, also if the victim is no guest."""
    run("index", recording("disk"), "-o", f"{folder}/disk.steal")
    run("ticket", f"{folder}/disk.steal", "-o", f"{folder}/disk.html")
    page.load(f"{folder}/disk.html")
    title = page.value("[...document.querySelectorAll('h2')].map(h => h.textContent).find(t => t.startsWith('The moment'))")
    at, victim = re.search(r"([0-9:.]{15}) UTC, .*, (\S+ .*)$", title).groups()
    begin, end = re.search(r"([0-9:.]+) to ([0-9:.]+)", page.value(RANGE)).groups()
    check(begin <= at <= end, f"{begin} <= {at} <= {end}")
    names = page.value("[...document.querySelectorAll('#timeline-sums tr')].map(r => r.children[0].textContent)")
    check(victim in names, f"{victim} in {names}")


def check_hostile(page, folder):
    """Names stay text: nothing but the page's own elements, and no script of a name runs."""
    shutil.copytree(os.path.join(DATA, "fibonacci"), f"{folder}/traces", ignore=shutil.ignore_patterns("*.steal"))
    for name in (*HOSTILE, b"<img/>", b"<b>bcd", b"</p><b"):
        rename(f"{folder}/traces", name)
        run("ticket", f"{folder}/traces", "-o", f"{folder}/hostile.html")
        page.load(f"{folder}/hostile.html")
        extra = page.value("document.querySelectorAll('img, b, iframe, script:not([type]), script[type]').length")
        check(extra == 2 and page.value("document.documentElement.className") == "scripted", f"{name!r}: the page's own elements only")


def main():
    if not browser.find():
        skip("no Chromium is installed")
    with scratch() as folder:
        history, path = f"{folder}/run.steal", f"{folder}/ticket.html"
        run("index", os.path.join(DATA, "fibonacci"), "-o", history)
        run("ticket", history, "-o", path)
        page = browser.Page(folder, 1280, 900)
        try:
            check_work(page, path)
            check_sums(page, history)
            check_links(page)
            check_forms(page, path)
            check_moment(page, folder)
            check_hostile(page, folder)
            check(page.problems == [], f"no error in the page {page.problems}")
        finally:
            page.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
