"""`stealscope ticket`: a self-contained page, without original names on request, and nothing half written."""
import base64
import csv
import hashlib
import html
import io
import json
import os
import re
import subprocess

from e2e import DATA, PROGRAM, check, run, scratch


def ticket(*args, status=0):
    p = subprocess.run([PROGRAM, "ticket", *args], capture_output=True, text=True, check=False)
    check(p.returncode == status, f"ticket {args} exits with {status} ({p.returncode} {p.stderr.strip()})")
    return p


def page_text(page):
    page = re.sub(r"(?s)<svg.*?</svg>|<style.*?</style>|<script>.*?</script>|base64,[A-Za-z0-9+/=]*", "", page)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


with scratch() as folder:
    os.environ["TMPDIR"] = folder
    os.environ["TZ"] = "Asia/Tokyo"
    recording = f"{folder}/run.steal"
    run("index", f"{DATA}/fibonacci", "-o", recording)
    before = set(os.listdir(folder))

    # ---- A page about a thread
    ticket(recording, "Debian/151", "-o", f"{folder}/t.html")
    page = open(f"{folder}/t.html", encoding="utf-8").read()
    text = page_text(page)
    culprits = list(csv.DictReader(io.StringIO(run("steal", recording, "Debian/151", "--by", "thread", "--format", "csv").stdout)))
    check("Main delay: host/216 burnP6" in text, "the first sentence names the culprit")
    check(all(c["culprit"] in text for c in culprits[:12]) and len(culprits) >= 12, "the table has the culprits of steal")
    check(f"{100 * float(culprits[0]['share']):.1f} %" in text, "and their shares")
    check("2026-11-20 05:30:48.348669" in text and "UTC" in text, "times are in UTC in any time zone")
    check(folder not in page, "no temporary name is left in it")
    links = re.findall(r"(?:href|src|url)\s*[=(]\s*[\"']?([^\"'\s>)]{1,40})", re.sub(r"(?s)<svg.*?</svg>", "", page))
    check(links == ["data:application/octet-stream;base64,"[:40]] or all(x.startswith(("data:", "#at=")) for x in links),
          f"it needs no other file {links}")
    data, script = re.findall(r"(?s)<script([^>]*)>(.*?)</script>", page)
    check(page.count("<svg") == 2 and data[0] == ' type="application/json" id="timeline-data"', "it has pictures, of the moment and of all, data and a script")
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    check(f"script-src 'sha256-{digest}'" in page and script[0] == "", "its policy allows this script only")
    markup = re.sub(r"(?s)<(svg|script|style).*?</\1>", "", page)
    tags = {t: (len(re.findall(rf"<{t}[ >]", markup)), markup.count(f"</{t}>")) for t in ("a", "table", "td", "th", "tr")}
    check(all(opened == closed > 0 for opened, closed in tags.values()), f"each element of a table ends {tags}")
    check(len(page) <= 300000, f"{len(page)} bytes")
    embedded = re.search(r"base64,([A-Za-z0-9+/=]+)", page).group(1)
    with open(f"{folder}/embedded.steal", "wb") as f:
        f.write(base64.b64decode(embedded))
    window = json.loads(run("summary", f"{folder}/embedded.steal", "--format", "json").stdout)["window"]
    part = ["--from", str(window["start"]), "--to", str(window["end"])]
    lost = [run("steal", h, "Debian/151", "--by", "thread", "--format", "csv", *part).stdout for h in (recording, f"{folder}/embedded.steal")]
    check(lost[0] == lost[1] and lost[0].count("\n") > 10, "the embedded history has the same losses")
    check(window["end"] - window["start"] > 1e9, "for more than a second")
    os.remove(f"{folder}/embedded.steal")

    # ---- A directory
    ticket(recording, "Debian", "-o", f"{folder}/dir")
    check(sorted(os.listdir(f"{folder}/dir")) == ["history.steal", "picture.svg", "ticket.html", "ticket.txt"], "its files")
    plain = open(f"{folder}/dir/ticket.txt", encoding="utf-8").read()
    check("host/216 burnP6 took 2.69 s of Debian" in plain, "the text begins with the verdict")
    ticket(recording, "-o", f"{folder}/dir", status=1)

    # ---- Without names
    # "lttng" is part of the tracer's name, which stays.
    names = [r["name"] for r in csv.DictReader(io.StringIO(run("threads", recording, "--format", "csv").stdout)) if r["name"]]
    names = sorted({n for n in names if len(n) > 3 and not n.startswith(("swapper", "idle", "lttng"))}) + ["Debian"]
    for arguments in ([], ["Debian/151"]):
        ticket(recording, *arguments, "--names", "hash", "-o", f"{folder}/h.html")
        page = open(f"{folder}/h.html", encoding="utf-8").read()
        history = base64.b64decode(re.search(r"base64,([A-Za-z0-9+/=]+)", page).group(1))
        shown = [n for n in names if n in page_text(page) or f">{n}<" in page]
        check(len(names) > 20 and shown == [], f"no original name is in the page {shown[:5]}")
        check(not any(n.encode() in history for n in names if len(n) > 6), "nor in its history")

    # ---- Refusals leave nothing
    ticket(recording, "nobody", "-o", f"{folder}/none.html", status=1)
    ticket(recording, "nobody", "-o", f"{folder}/none", status=1)
    ticket(recording, status=1)
    with open(f"{folder}/mine.html", "w", encoding="utf-8") as f:
        f.write("my notes")
    ticket(recording, "-o", f"{folder}/mine.html", status=1)
    check(open(f"{folder}/mine.html", encoding="utf-8").read() == "my notes", "another file is not replaced")
    left = set(os.listdir(folder)) - before - {"t.html", "h.html", "dir", "mine.html"}
    check(left == set(), f"nothing is left behind {left}")
