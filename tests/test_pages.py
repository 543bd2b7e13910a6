"""Every json answer comes in pages: joined they are the whole answer, and a row leads to further queries."""
import json
import os
import random

from e2e import DATA, check, run, scratch, simulate, table


def page(command, *options):
    return json.loads(run(*command, "--format", "json", *options).stdout)


def pages(command, limit):
    """Returns all pages of an answer; calls `limit` for each."""
    found, after = [], []
    while True:
        found.append(page(command, "--limit", str(limit()), *after))
        if found[-1]["next"] is None:
            return found
        after = ["--after", found[-1]["next"]]


def frame(document):
    return {k: v for k, v in document.items() if k not in ("rows", "next")}


def check_pages(command):
    """Property: pages of any size joined are the answer; all other members are the same in each."""
    whole = page(command, "--limit", "0")
    n = len(whole["rows"])
    check(whole["next"] is None, "all of it has no next page")
    for name, limit in (("one page", lambda: n or 1), ("all but one", lambda: max(n - 1, 1)), ("halves", lambda: n // 2 + 1),
                        ("pages of any size", lambda: random.randint(max(n // 20, 1), max(n // 4, 1)))):
        got = pages(command, limit)
        check([r for p in got for r in p["rows"]] == whole["rows"] and all(frame(p) == frame(whole) for p in got) and
              all(p["rows"] for p in got) == (n > 0), f"{command[0]}: {n} rows, {name} ({len(got)})")
    return whole


def check_drill(history, rows, names):
    """The names in a row are targets, and its interval is a window."""
    asked = {}
    for row in rows:
        span = (row["start"], row["end"]) if row.get("start") is not None else None
        for name in names:
            if "/0 " not in row[name]:  # idle threads are no targets
                asked[(row[name], span)] = True
    for (subject, span) in random.sample(sorted(asked, key=str), min(len(asked), 12)):
        window = ["--from", str(span[0]), "--to", str(span[1])] if span else []
        told = page(["gaps", history, subject, "--top", "0", *window])
        check(told["target"] == subject, f"asked about '{subject}'")
        if span:
            check((told["window"]["start"], told["window"]["end"]) == span, "and in that window")
    return len(asked)


random.seed(int(os.environ.get("SEED", "23")))
with scratch() as folder:
    history, requests, locks = (f"{folder}/{name}.steal" for name in ("fibonacci", "requests", "locks"))
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    simulate(f"{folder}/requests", "requests", "--duration", "1s", "--lost", "0.1", "--poll", "1ms")
    run("index", f"{folder}/requests", "-o", requests)
    simulate(f"{folder}/locks", "chain", "--duration", "1s")
    run("index", f"{folder}/locks", "-o", locks)
    for command in (["gaps", history, "--top", "0"], ["gaps", history, "Debian/151", "--top", "0", "--all-culprits"],
                    ["gaps", history, "--histogram"], ["gaps", history, "--lengths"], ["gaps", history, "--periodic"],
                    ["gaps", history, "--inside"], ["gaps", locks, "--locks"],
                    ["summary", history], ["threads", history], ["steal", history, "--by", "thread"], ["exits", history],
                    ["exits", history, "--by", "thread"], ["exits", history, "--histogram"], ["waits", history],
                    ["waits", requests, "--polling"], ["path", history, "Debian/151"], ["path", history, "Debian/151", "--sums"],
                    ["events", history, "--at", "50%", "--around", "20ms"], ["info", history],
                    ["sync", history], ["flow", history, "Debian/151"], ["flow", history, "Debian/151", "--intervals"],
                    ["intervals", history, "/Host/Threads/216/Status"], ["latency", "requests", requests],
                    ["latency", "report", requests], ["latency", "report", "--heat", f"1,2={requests}"], ["diff", history, requests, "--all"],
                    ["whatif", history, "without burnP6"], ["export", history, "--to", f"csv:{folder}/csv"]):
        check_pages(command)
    if "not in this build" not in next(x for x in run("export", "--targets").stdout.split("\n") if x.startswith("sqlite:")):
        for what in (history, requests):
            run("export", what, "--to", f"sqlite:{folder}/db")
        for question in [line.split()[0] for line in run("fleet").stdout.splitlines() if not line.startswith("live ")]:
            check_pages(["fleet", f"sqlite:{folder}/db", question])

    # The default limit applies.
    flow = ["flow", history, "Debian/151", "--intervals"]
    most, bounded = len(page(flow, "--limit", "0")["rows"]), page(flow)
    check(most > 10000 and len(bounded["rows"]) == 10000 and bounded["next"], f"without --limit 10000 rows of {most}")

    # A page of another answer is refused.
    first = page(["gaps", history], "--limit", "3")["next"]
    for command, after, why in ((["gaps", requests], first, "start again"), (["steal", history], first, "start again"),
                                (["gaps", history], "3-0000000000000000", "start again"),
                                (["gaps", history], first.replace("3-", "4-"), "start again"),
                                (["gaps", history, "--top", "3"], first, "start again"),
                                (["gaps", history], "3", "previous page"), (["gaps", history], "0-" + first[2:], "previous page"),
                                (["gaps", history], "-1-" + first[2:], "previous page"), (["gaps", history], first + " ", "previous page")):
        p = run(*command, "--format", "json", "--after", after, status=1)
        check(p.stdout == "" and why in p.stderr and p.stderr.count("\n") == 1, p.stderr.strip())
    for option in (["--after", first], ["--limit", "3"], ["--limit", "3", "--format", "csv"]):
        p = run("gaps", history, *option, status=1)
        check(p.stdout == "" and "--format json" in p.stderr, f"only json has pages: {' '.join(option)}")

    # Queries from the values of a row.
    for command, names in ((["gaps", history, "--top", "0"], ["target"]), (["gaps", history, "Debian/151"], ["target"]),
                           (["summary", history], ["target"]), (["steal", history], ["victim"]),
                           (["steal", history, "--by", "thread"], ["victim"])):
        check(check_drill(history, page(command)["rows"], names) > 0, f"{command[0]}: the rows lead on")
    culprits = {r["culprit"]["text"] for r in page(["steal", history, "--by", "thread"])["rows"]}
    culprits = sorted(t for t in culprits if t.startswith(("host/", "Debian/")) and "/0 " not in t)
    for t in random.sample(culprits, 12):  # under a name that it had at some time
        check(page(["gaps", history, t])["target"].split(" ")[0] == t.split(" ")[0], f"so does a culprit, {t}")
    culprits = {r["culprit"] for r in page(["latency", "requests", requests])["rows"] if "/" in (r["culprit"] or "")}
    check(all(page(["gaps", requests, c])["target"] == c for c in culprits), f"and {len(culprits)} culprits of requests")
    for r in page(["threads", history])["rows"][:5]:
        who = f"{r['machine']}/{r['tid']}"
        lost = sum(int(x["ns"]) for x in table("steal", history, who, "--from", str(r["start"]), "--to", str(r["end"])))
        check(lost == r["lost_ns"], f"{who}: lost what it lost")
