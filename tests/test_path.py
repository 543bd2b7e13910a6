"""`stealscope path` on the real recording: it tiles the window, and has the culprits of the flow."""
from e2e import DATA, check, run, scratch, table

with scratch() as folder:
    history = f"{folder}/fibonacci.steal"
    run("index", f"{DATA}/fibonacci", "-o", history)
    path, flow = table("path", history, "Debian/151"), table("flow", history, "Debian/151")
    check(all(int(a["end"]) + 1 == int(b["start"]) for a, b in zip(path, path[1:])), f"{len(path)} pieces tile the window")

    def time(rows, **like):
        return sum(int(r["duration_ns"]) for r in rows if all(r[k] == v for k, v in like.items()))

    hog = time(path, culprit_name="burnP6")
    check(hog == time(flow, name="burnP6") > 10**9, f"burnP6 took {hog} ns, as in the flow: it sleeps for nobody who waits")
    check(time(path, kind="running", tid="151") == time(flow, kind="running"), "what it ran is what it ran")
    sums = table("path", history, "Debian/151", "--sums")
    check(time(sums) == time(path) and abs(sum(float(r["share"]) for r in sums) - 1) < 1e-6, "the sums are those of the pieces")
    check(time(sums, culprit_name="burnP6") == hog, "by culprit, too")
    middle = path[len(path) // 2]
    one = table("path", history, "Debian/151", "--from", middle["start"], "--to", middle["end"])
    check([r["kind"] for r in one] == [middle["kind"]] and one[0]["start"] == middle["start"], "a window of one piece")
    idle = table("path", history, "Debian/CPU0")
    check(time(idle) == int(idle[-1]["end"]) - int(idle[0]["start"]) + 1 and time(idle, kind="wait", name="timer") > 0,
          "a vCPU waits for timers")
    check(not any("0" in (r["tid"], r["culprit_tid"]) for r in idle), "and its idle task is nobody")
    beacon = [r["tid"] for r in table("threads", history, "Debian") if r["name"] == "beacon"][0]
    path = table("path", history, f"Debian/{beacon}")
    woken = [r for r in path if r["edge"] in ("inject", "ipi") and r["machine"] == "Debian" and r["tid"] == beacon]
    check({"hypervisor", "idle-cpu"} < {r["kind"] for r in woken} and time(woken, culprit_name="burnP6") > 0,
          f"while its idle vCPU is being woken for it, {time(woken)} ns are those of the beacon, also where burnP6 has that CPU")
    check(not any("0" in (r["tid"], r["culprit_tid"]) for r in path), "and none those of the idle task")
    check(time(path, kind="running", tid=beacon) == time(table("flow", history, f"Debian/{beacon}"), kind="running"),
          "what it ran is still what it ran")
    text = run("path", history, "Debian/151").stdout
    check("burnP6" in text and "share" in text, "text is the sums")
    run("path", history, "Debian", status=1)
    run("path", history, "host/CPU0", status=1)
    run("path", history, "Debian/99999", status=1)

    run("index", "--host", f"{DATA}/fibonacci/host", "-o", f"{folder}/host.steal")
    for traces, inside in ((history, False), (f"{folder}/host.steal", True)):
        machine = table("info", traces)[0]["vm"]
        p = run("path", traces, f"{machine}/CPU0", "--format", "csv")
        check((f" are inside {machine}, which was not traced" in p.stderr) == inside, f"the path ends inside a guest: {inside}")
