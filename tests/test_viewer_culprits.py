"""The culprit at a glance: what the viewer's screens name without a key, and how many keys lead to the moment.

The true culprits are those of truth.json, expected.json and NOTES of the recordings."""
import os
import re
import subprocess

from e2e import BUILD, DATA, SHARED, check, run, scratch, simulate, skip, table


def screen(history, keys, folder, size="80x24"):
    """Returns the lines of the screen after the keys, one line of the script each."""
    script, file = os.path.join(folder, "script"), os.path.join(folder, "screen.txt")
    with open(script, "w", encoding="utf-8") as f:
        f.write("\n".join([*keys, f":screen {file}!", ""]))
    run("view", history, "--fresh", "--script", script, "--size", size, "--glyphs", "ascii", "--color", "never",
        env={"TZ": "UTC", "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": folder})
    return open(file, encoding="utf-8").read().split("\n")


def shows(lines, pattern, description):
    check(re.search(pattern, "\n".join(lines), re.M), f"{description}: {pattern}")


def check_sums(history, folder):
    """The sums below the rows have the figures of the commands."""
    def sums(row, tabs):
        lines = screen(history, ["O<BS>", f":{row}", "<Tab>" * tabs], folder, "130x60")
        at = next(i for i, line in enumerate(lines) if line.startswith(f"- ") and row in line)
        lines = [line.rstrip() for line in lines[at:]]
        return re.sub(r" +", " ", "\n".join(lines))

    def figures(pattern, *args):
        text = re.sub(r" +", " ", run(*args).stdout)
        return [" ".join(m.groups()) for m in re.finditer(pattern, text, re.M)]

    for row in ("Debian/CPU0", "Debian/151"):
        culprits, cpus, exits = (sums(row.replace("CPU0", "vCPU0"), tabs) for tabs in (0, 2, 3))
        top = figures(r"(host/216 burnP6) +(\d\S* \w+) +9\S+%$", "steal", history, row, "--by", "thread")
        check(len(top) == 1 and top[0] in culprits, f"{row}: {top} in {culprits}")
        ns = top[0].split("burnP6 ")[1]
        check(re.search(f"CPU1 \\S+ \\w+ {ns} \\S+% host/216 burnP6", cpus), f"{row}: {ns} on CPU1 in {cpus}")
        reasons = figures(r"^Debian 0 (\w+ \d+ \d\S* \w+)", "exits", history, row)
        check(len(reasons) > 1 and all(reason in exits for reason in reasons), f"{row}: {reasons} in {exits}")
    wakers = figures(r"^Debian 0 (\w+ host \d* ?\w\S* \d+ \d\S* \w+)", "waits", history, "Debian/CPU0")
    shown = sums("Debian/vCPU0", 4)
    check(len(wakers) > 1 and all(waker in shown for waker in wakers), f"{wakers} in {shown}")


def check_long_pane(history, folder):
    """A pane lays out the rows of the first screens; the last one, and lines found by a filter, are there all the same."""
    rows = table("gaps", history, "Debian/151", "--top", "0")
    lines = screen(history, ["O<BS>", ":Debian/151", "PG"], folder, "120x40")
    last = int(rows[-1]["start"]) % 10**9 // 10**5
    check(len(rows) > 1000 and f".{last:04d} " in [line for line in lines if line.strip()][-3],
          f"G goes to the last of {len(rows)} gaps")
    found = [row for row in rows if row["culprit_name"] == "rcu_preempt"]
    title = next(line for line in screen(history, ["O<BS>", ":Debian/151", "P/rcu_preempt<Enter>"], folder, "120x40")
                 if "gaps of" in line)
    check(0 < len(found) < 100 and f" {len(found)} gaps of" in title, f"the filter finds {len(found)} lines: {title}")


def check_sleepers(history, folder):
    """Threads that sleep in the whole window are one row; a key unfolds it; H and a wide window show them."""
    def threads(*keys):
        text = "\n".join(screen(history, ["O<Tab><Enter>", *keys], folder))
        return re.findall(r"^ +\d+ [\w/:.-]+", text, re.M), re.findall(r"([>v]) (\d+) threads slept", text)

    shown, folds = threads()
    check(len(folds) == 1 and folds[0][0] == ">" and int(folds[0][1]) > 1, f"one row for the sleepers: {folds}")
    unfolded, folds_open = threads("jj<Space>")
    check(folds_open == [("v", folds[0][1])] and len(unfolded) == len(shown) + int(folds[0][1]),
          f"unfolded: {folds_open} {shown} {unfolded}")
    check(len(threads("H")[0]) > len(unfolded) and not threads("H")[1], "H shows them")
    check(not threads("0")[1] and len(threads("0")[0]) >= len(unfolded), "no thread sleeps in the whole recording")


def check_fibonacci(folder):
    history = os.path.join(folder, "fibonacci.steal")
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    for size in ("80x24", "120x40", "200x50"):
        lines = screen(history, ["O"], folder, size)
        shows(lines[1:2], r"^ host/216 burnP6 took 2\.\d+ s of Debian", f"{size}: verdict")
        share = "" if size == "80x24" else r"9\d(\.\d)?% "  # names come before the share
        shows(lines, rf"^ Debian +\d.* host/216 burnP6 +{share}", f"{size}: the culprit is not cut, and has a share")
        lines = screen(history, ["Og<Tab><Enter>"], folder, size)
        shows(lines, r"151 fibonacci .*:[: ]+(host/216 )?burnP6 *:", f"{size}: the culprit inside the gap")
        at = next(i for i, line in enumerate(lines) if "151 fibonacci" in line)
        shows(lines[at + 1:at + 2], r"^ +on CPU1 .*h burnP6 +h", f"{size}: the host's CPU below the row")
        check(not any("152 sed" in line for line in lines), f"{size}: no row of a thread that is not alive")
        shows(lines[:1], r"cursor \.?\d", f"{size}: the time at the cursor")
    lines = screen(history, ["O<BS>", "0v20lz"], folder)
    whole = screen(history, ["O<BS>", "0"], folder)
    check(lines[2] != whole[2] and "range" not in lines[-2], "z zooms to the range")
    lines = screen(history, ["O<BS>", ":filter ~^debian/1[45][0-9] (beacon|sed)$"], folder)
    names = re.findall(r"^ +(\d+ \w+) ", "\n".join(lines), re.M)
    check("149 beacon" in names and "151 fibonacci" not in names, f"a regular expression {names}")
    status = screen(history, ["O/151<Enter>"], folder, "120x40")[-3:]
    check(any(line.startswith(" Debian/151 fibonacci lost") for line in status), f"a filter goes to the row of this name: {status}")
    check_sums(history, folder)
    check_sleepers(history, folder)
    check_long_pane(history, folder)
    text = "\n".join(screen(history, ["O<BS>", "0^", ":Debian/152"], folder))
    check(re.search(r"^ +152 sed .*\*", text, re.M), "a thread that was hidden is shown when it is named")


def check_guest_time(folder):
    """The guest's clock is 5.42 s behind the host's (truth.json: wall clock of the guest)."""
    history = os.path.join(folder, "fibonacci.steal")
    for command in (":Debian@05:30:46.04", ":goto Debian@05:30:46.04"):
        lines = screen(history, ["O<BS>", ":Debian/151", command, "x"], folder, "120x60")
        shows(lines, r"guest time +Debian@05:30:46\.040000", "the time of the guest at the cursor")
        ns = int(re.search(r"cursor +(\d+) ns", "\n".join(lines)).group(1))
        offset = ns - (1795152646040000000)
        check(abs(offset - 5_422_619_000) < 10_000_000, f"the guest's clock is 5.42 s behind: {offset} ns")
    later = f"{history}@99%..100%"
    check(run("diff", f"{history}@Debian@05:30:46.04..Debian@05:30:46.05", later, status=0).stdout, "diff of guest times")
    check(table("diff", f"{history}@Debian@05:30:46.04..+6s", later, "--all") ==
          table("diff", f"{history}@{ns}..+6s", later, "--all"), "diff accepts times of a guest")
    err = run("diff", f"{history}@Debian@noon..", later, status=1).stderr
    check("Debian@noon: not a time" in err and err.count("\n") == 1, f"diff of a wrong time: {err!r}")
    at = run("explain", history, "Debian/151", "--at", "Debian@05:30:46.04").stdout
    check(re.match(r"Debian/151 fibonacci was VIRT_PREEMPTED for 12.1 ms from 05:30:51.462785", at), f"explain --at: {at[:90]}")
    rows = table("gaps", history, "Debian/CPU0", "--from", "Debian@05:30:46.0", "--to", "Debian@05:30:46.05")
    start = min(int(row["start"]) for row in rows) if rows else 0
    check(1795152651422000000 < start < 1795152651473000000, f"gaps --from and --to: {start}")
    for option in ("--from", "--to"):
        for time in ("Debian@noon", "host@05:30:46", "Nobody@05:30:46"):
            err = run("gaps", history, "Debian", option, time, status=1).stderr
            check(option in err and err.count("\n") == 1, f"{option} {time}: {err!r}")
    script = os.path.join(folder, "refused")
    for time, reason in (("Debian@noon", "not a time"), ("host@05:30:46", "clock of this machine is unknown")):
        with open(script, "w", encoding="utf-8") as f:
            f.write(f":goto {time}\n")
        err = run("view", history, "--fresh", "--script", script, status=2, env={"XDG_STATE_HOME": folder}).stderr
        check(reason in err, f"{time}: {err!r}")


def check_quiet(folder):
    traces, history = os.path.join(folder, "quiet"), os.path.join(folder, "quiet.steal")
    simulate(traces, "idle", "--duration", "3s")
    run("index", traces, "-o", history)
    lines = screen(history, ["O"], folder)
    shows(lines[1:2], r"^ healthy: ", "a quiet recording")
    check("!" not in lines[2] and "i" not in lines[2].split("peak")[1], f"a quiet lane {lines[2]!r}")


def check_crowd(folder):
    traces, history = os.path.join(folder, "crowd"), os.path.join(folder, "crowd.steal")
    simulate(traces, "overcommit", "32", "--events", "60k")
    run("index", traces, "-o", history)
    lines = screen(history, ["O"], folder)
    shows(lines[1:3], r"overcommitted: \d+ vCPUs of 32 VMs on 4 CPUs", "no VM is blamed for an overcommitted host")
    shows(lines, r"^ vm\d+ .* many, most vm\d+", "a culprit with a small share is one of many")
    for keys in ("O<BS>", "O<BS>MM", "O<BS>MMjjjj", "O<BS>MMHG"):
        rows = re.findall(r"^[= ]+(?:host/)?CPU(\d)  ", "\n".join(screen(history, [keys], folder)), re.M)
        check(rows == list("0123"), f"{keys}: the CPU rows of the host are on the screen: {rows}")


def check_recordings(folder):
    """Recordings on real kernels: verdict; after Enter on the most delayed thread its moment, by the culprit of its row."""
    cases = (
        ("pair", r"host/306 burnP6 took", ["Og<Tab><Enter>"], r"Ubuntu/156 pairserver .* by host/306 burnP6"),
        ("disk", r"host/267 rtburst delayed host/153 IO io0", ["OC<Enter>"], r"\* *IO io0|IO io0 +\d+%\*"),
        ("lockholder", r"burnP6", ["O<Enter>"], r"by host/\d+ burnP6"),
        ("throttled", r"quota.*throttled Debian", ["O<Enter>"], r"quota"),
        ("migrate", r"Debian was migrated", ["O<Enter>"], r"host|migration"),
    )
    for name, verdict, keys, moment in cases:
        history = os.path.join(folder, name + ".steal")
        run("index", os.path.join(SHARED, name), "-o", history)
        for size in ("80x24", "120x40", "200x50"):
            shows([" ".join(screen(history, ["O"], folder, size)[1:3])], verdict, f"{name} {size}: verdict, no key")
            if keys:
                shows(screen(history, keys, folder, size)[-3:-1] if name != "disk" else screen(history, keys, folder, size), moment, f"{name} {size}: the moment")
    disk = os.path.join(folder, "disk.steal")
    shows(screen(disk, ["OC"], folder), r"host/153 IO io0 +preempting +host/267 rtburst", "disk: the path sums by thread")
    shows(screen(disk, ["OC<Enter>"], folder), r"IO io0.*rtburst", "disk: two keys lead to a delay by rtburst")
    migrate = os.path.join(folder, "migrate.steal")
    lines = screen(migrate, ["Og<Tab>"], folder, "120x40")
    shows(lines, r"^ Debian/149 cc .* host +[\d.]+% +360 ms ", "the culprit of the row, and its longest wait")
    shows(lines[-3:-1], r"^ Debian/149 cc .*\b360 ms by \(migration\)", "the longest wait has its own culprit")


def main():
    if subprocess.run([os.path.join(BUILD, "stealscope"), "--version"], check=False, capture_output=True).returncode:
        skip("stealscope is not built")
    with scratch() as folder:
        check_fibonacci(folder)
        check_guest_time(folder)
        check_quiet(folder)
        check_crowd(folder)
        if not os.path.isdir(os.path.join(SHARED, "pair")):
            skip("no recordings")
        check_recordings(folder)


main()
