"""summary, threads and steal with --group: the sums of the threads of one name or process, in each column that adds up.
Processes and outer control groups as targets: the same sums."""
import os
import re
from collections import defaultdict

from e2e import DATA, check, run, scratch, simulate, table


def total(rows, key, column):
    sums = defaultdict(int)
    for row in rows:
        sums[key(row)] += int(row[column])
    return dict(sums)


def check_names(history, name):
    def key(row):
        return row["machine"], row["name"]

    one_by_one, groups = table("threads", history), table("threads", history, "--group", "name")
    check(len({key(row) for row in groups}) == len(groups), f"{name}: a row for each name")
    for column in ("ran_ns", "lost_ns", "gaps", "threads"):
        check(total(one_by_one, key, column) == total(groups, key, column), f"{name}: {column} of groups are sums")
    for row in groups:
        rows = [r for r in one_by_one if key(r) == key(row)]
        check(int(row["start"]) == min(int(r["start"]) for r in rows), f"{name}: a group begins with its first thread")
        check(int(row["end"]) == max(int(r["end"]) for r in rows), f"{name}: a group ends with its last thread")
        check(int(row["longest_ns"]) == max(int(r["longest_ns"]) for r in rows), f"{name}: longest gap of the group")
        check(len(rows) > 1 or row["tid"] == rows[0]["tid"], f"{name}: a thread alone in its group keeps its TID")
    return groups


def check_matrix(history, name):
    """The cells of a group of victims add up to its gaps."""
    cells = table("steal", history, "--group", "name")
    one_by_one = table("steal", history, "--by", "thread")

    def group(row):
        machine, rest = row["victim"].split("/", 1)
        return machine, rest.split(" ", 1)[1] if " " in rest else ""

    def of_group(row):
        return tuple(row["victim"].split("/", 1))

    check(total(one_by_one, group, "ns") == total(cells, of_group, "ns"), f"{name}: cells of groups are sums")
    check(len({(c["victim"], c["culprit"]) for c in cells}) == len(cells), f"{name}: a cell for each pair")
    check(sum(int(c["ns"]) for c in cells) == sum(int(c["ns"]) for c in one_by_one), f"{name}: the whole matrix")


def check_processes(history, name):
    """A process as a target lost what its row lost, to whomever, and what its vCPUs lost, which count for their VM there; its
    threads are those of the target."""
    several = 0
    for row in table("threads", history, "--group", "process", "--top", "0"):
        target = f"{row['machine']}/process:{row['tid']}"
        if not row["tid"] or row["name"] == "unknown process":
            continue
        cells = table("steal", history, target)
        gaps = table("gaps", history, target, "--top", "0")
        several += int(row["threads"]) > 1
        if int(row["threads"]) > 1 and several < 4:
            most = max((r for r in table("summary", history, target, "--top", "0") if r["target"].startswith(target + "/")),
                       key=lambda r: int(r["lost_ns"]))["target"].split(" ")[0]
            for command in ("flow", "path"):
                of_process = run(command, history, target)
                check(most in of_process.stderr and of_process.stdout == run(command, history, most).stdout,
                      f"{name}: {command} of {target} is that of {most}")
        got, wanted = (sum(int(c["ns"]) for c in cells), len(gaps)), (int(row["lost_ns"]), int(row["gaps"]))
        if got != wanted and not (row["name"].startswith("qemu") and got > wanted):
            check(False, f"{name}: {target} {row['name']} lost {got[0]} ns in {got[1]} gaps, its row {wanted}")
        if int(row["threads"]) > 1 and gaps:
            thread = gaps[0]["target"].split(" ")[0]
            lengths = [g["duration_ns"] for g in table("gaps", history, thread)]
            check(gaps[0]["duration_ns"] in lengths, f"{name}: {thread} is a target")
    return several


def check_outer_groups(folder):
    """A control group with groups in it is the sum of what lies below."""
    world = os.path.join(folder, "groups")
    simulate(world, "groups", "--seed", "4", "--quota-facts", "stat")
    file = world + ".steal"
    run("index", world, "-o", file)
    with open(f"{world}/session.yaml", encoding="utf-8") as f:
        items = [item.split() for item in f.read().split("- path: ")[1:]]
    groups = [(item[0], item[2], item[item.index("threads:") + 1:] if "threads:" in item else []) for item in items]
    lost = total(table("threads", file, "--top", "0"), lambda row: row["tid"], "lost_ns")
    outer = [g for g in groups if any(other[0].startswith(g[0] + "/") for other in groups)]
    check(outer, f"a world with groups in groups: {groups}")
    for path, name, _ in outer:
        below = [tid for g in groups if (g[0] + "/").startswith(path + "/") for tid in g[2]]
        for target in (path, *[name] * (not any(g[2] for g in groups if g[0] == path))):
            got = sum(int(c["ns"]) for c in table("steal", file, target))
            check(got == sum(lost.get(tid, 0) for tid in below), f"{target}: the loss of its {len(below)} threads, {got} ns")


def check_beside_vms(folder):
    """Control groups of a host with VMs are targets as well, and rows, even those with one thread."""
    world = os.path.join(folder, "beside")
    simulate(world, "overcommit", "3", "--duration", "300ms")
    groups = {"/init.scope": [121], "/system.slice/ssh.service": [120, 122], "/system.slice/ssh.service/worker": [124]}
    with open(f"{world}/session.yaml", "w", encoding="utf-8") as f:
        f.write("host:\n  dir: host\n  control_groups:\n")
        for path, tids in groups.items():
            f.write(f"  - path: {path}\n    name: {path.rsplit('/', 1)[1]}\n    threads: {' '.join(map(str, tids))}\n")
        f.write("guests:\n" + "".join(f"- name: vm0{i}\n  dir: guest-vm0{i}\n" for i in range(3)))
    file = world + ".steal"
    run("index", world, "-o", file)
    lost = total(table("threads", file, "host", "--top", "0"), lambda row: int(row["tid"]), "lost_ns")
    rows = {row["name"]: row for row in table("threads", file, "host", "--group", "cgroup", "--top", "0")}
    for path, tids in groups.items():
        below = [tid for other in groups if (other + "/").startswith(path + "/") for tid in groups[other]]
        name = path.rsplit("/", 1)[1]
        for target in (path, name):
            check(sum(int(c["ns"]) for c in table("steal", file, target)) == sum(lost.get(tid, 0) for tid in below),
                  f"{target}: the loss of {below} beside VMs")
        check(int(rows[name]["lost_ns"]) == sum(lost.get(tid, 0) for tid in tids), f"{name}: a row of {len(tids)} threads")


def check_viewer(folder, history):
    """The filter process:NAME shows the threads of these processes, :process:NAME goes to the first one of a process."""
    script, screen = f"{folder}/keys", [f"{folder}/screen{i}" for i in range(2)]
    with open(script, "w", encoding="utf-8") as f:
        f.write(f":Debian/process:107\n:screen {screen[0]}!\n:filter process:lttng-sessiond\n:screen {screen[1]}!\n")
    run("view", history, "--fresh", "--script", script, "--size", "100x60", "--glyphs", "ascii",
        env={"XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder})
    with open(screen[0], encoding="utf-8") as first, open(screen[1], encoding="utf-8") as second:
        gone, shown = first.read(), second.read()
    check(re.search(r" 107 lttng-sessiond .*\*", gone), f"the row of the process is selected\n{gone}")
    threads = sorted(int(r["threads"]) for r in table("threads", history, "--group", "process", "--top", "0")
                     if r["name"] == "lttng-sessiond")
    check(len(re.findall(r"(?m)^ +\d+ \S.*\|", shown)) == sum(threads), f"rows of {threads} threads\n{shown}")


with scratch() as folder:
    check_outer_groups(folder)
    check_beside_vms(folder)
    for world in ("fibonacci", "overcommit"):
        traces = os.path.join(DATA, "fibonacci")
        if world == "overcommit":
            traces = os.path.join(folder, world)
            simulate(traces, world, "8", "--duration", "1s")
        file = os.path.join(folder, world + ".steal")
        run("index", traces, "-o", file)
        check_names(file, world)
        check_matrix(file, world)
        summary = [r for r in table("summary", file, "--group", "name", "--top", "0") if r["threads"]]
        delayed = [r for r in table("threads", file, "--group", "name") if int(r["lost_ns"])]
        check([(r["machine"], r["name"], r["lost_ns"], r["p99_ns"], r["culprit"]) for r in summary] ==
              [(r["machine"], r["name"], r["lost_ns"], r["p99_ns"], r["culprit"]) for r in delayed],
              f"{world}: summary and threads list the same groups")
        check(world != "fibonacci" or check_processes(file, world) > 3, f"{world}: processes with several threads")
    fibonacci = os.path.join(folder, "fibonacci.steal")
    check_viewer(folder, fibonacci)
    run("diff", fibonacci, fibonacci, "--assert", "Debian/process:107.lost<+5%", "--assert", "Debian.lost<+5%")
    run("diff", fibonacci, fibonacci, "--assert", "process:nothing.lost<+5%", status=2)
    processes = table("threads", fibonacci, "Debian", "--group", "process")
    single = next(r["tid"] for r in processes if r["threads"] == "1")
    run("diff", fibonacci, fibonacci, "--assert", f"Debian/process:{single}.lost<+5%")
    sessiond = [r for r in processes if r["name"] == "lttng-sessiond"]
    check([(r["tid"], r["threads"]) for r in sessiond] == [("107", "17")], f"the 17 threads of a process: {sessiond}")
    check(any("lttng-sessiond (17 threads)" in line for line in
              run("threads", fibonacci, "--group", "process").stdout.split("\n")), "text shows the number of threads")
    check(run("threads", fibonacci, "--group", "cgroup").stdout.count("unknown cgroup (") >= 2,
          "without recorded control groups, one unknown group per machine")
    check("invalid value 'user'" in run("threads", fibonacci, "--group", "user", status=1).stderr, "other groups are refused")
