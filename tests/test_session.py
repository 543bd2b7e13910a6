"""Session files: names, directories, known clocks and vCPU threads; positions of errors."""
import json
import os
import shutil
import socket
import subprocess

import history_reader
from e2e import BUILD, DATA, check, codes, recording, rename, run, scratch, simulate, table

TRACE = os.path.join(DATA, "fibonacci")
with open(os.path.join(TRACE, "truth.json"), encoding="utf-8") as f:
    TRUTH = json.load(f)


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def check_names(folder):
    os.symlink(TRACE, os.path.join(folder, "traces"))
    path = write(os.path.join(folder, "names.yaml"), """
host: {dir: traces/host, name: hv01}
guests:
  - name: web
    dir: traces/guest-Debian
""")
    out = os.path.join(folder, "names.steal")
    run("index", path, "-o", out)
    row = table("info", out)[0]
    check((row["vm"], row["vcpu"], row["host_tid"]) == ("web", "0", "154"), "the guest has the session's name")
    machines = {t["machine"] for t in json.loads(run("info", out, "--format", "json").stdout)["traces"]}
    check(machines == {"hv01", "web"}, "so has the host; directories are relative to the file")
    again = {"XDG_CACHE_HOME": os.path.join(folder, "cache")}
    for name in ("hv01", "hv02"):
        write(path, f"host: {{dir: traces/host, name: {name}}}\nguests: [{{name: web, dir: traces/guest-Debian}}]\n")
        p = run("info", path, "--format", "json", env=again)
        check(name in {t["machine"] for t in json.loads(p.stdout)["traces"]}, "another name does not match the cache")
    write(path, "host: {dir: traces/host, facts: {cpu: [1, {a: b}]}}\nguests:\n"
                "  - {name: web, dir: traces/guest-Debian, tsc: {offset: -5, ratio: 3, bits: 1}, facts: who}\n")
    check(table("info", path)[0]["vm"] == "web", "facts of the recorder are accepted")
    many = "".join(f"  - {{name: {'guest' * 10}{i}, vcpus: {{{i}: {7000 + i}}}}}\n" for i in range(20))
    write(path, "host: {dir: traces/host}\nguests:\n  - {name: web, dir: traces/guest-Debian}\n" + many)
    run("info", path, env=again)
    check("indexing again" not in run("info", path, env=again).stderr, "a long session is found in the cache")
    return path


def check_offset(folder):
    clock = TRUTH["vms"]["Debian"]["true_clock"]
    guest = TRUTH["traces"]["guest-Debian"]
    middle = (guest["first_cycles"] + guest["last_cycles"]) // 2
    host = clock["host_at_begin"] + clock["slope"] * (middle - clock["guest_begin"])
    offset = round(host - middle) + TRUTH["traces"]["host"]["clock_offset_ns"] - guest["clock_offset_ns"]
    path = write(os.path.join(folder, "offset.yaml"), f"""
host: {{dir: traces/host}}
guests:
  - {{name: Debian, dir: traces/guest-Debian, offset: {offset}ns}}
""")
    row = table("sync", path)[0]
    check(row["method"] == "offset" and float(row["alpha_ppm"]) == 0, "a given offset is the clock")
    check(int(row["ref_host_ns"]) - int(row["ref_guest_ns"]) == offset, "to the ns")
    check(float(row["containment"]) < 1, "and containment shows the missing drift of 100 ppm")


def check_nudge(folder):
    """A manual offset moves the clock by exactly that many ns; containment drops if it is too large."""
    def clock_of(nudge):
        path = write(os.path.join(folder, "nudge.yaml"), f"""
host: {{dir: traces/host}}
guests:
  - {{name: Debian, dir: traces/guest-Debian{nudge}}}
""")
        p = subprocess.run([os.path.join(BUILD, "stealscope"), "sync", path], capture_output=True, text=True, timeout=300)
        return table("sync", path)[0], p.stderr
    found, says = clock_of("")
    check("manual clock offset" not in says and float(found["containment"]) == 1, "the clock that was found contains")
    for text, ns in ("+300ns", 300), ("-2us", -2000), ("3ms", 3000000):
        row, says = clock_of(", nudge: " + text)
        moved = int(row["ref_host_ns"]) - int(found["ref_host_ns"])
        check(row["ref_guest_ns"] == found["ref_guest_ns"] and moved == ns, f"nudge {text}: by {moved} ns")
        check(row["alpha_ppm"] == found["alpha_ppm"] and row["error_mid_ns"] == found["error_mid_ns"], "nothing else moves")
        check(f"offset {ns:+d} ns" in says and "100.000 %" in says, f"a note says so: {says.strip()}")
    check(float(row["containment"]) < 0.99 and int(row["worst_violation_ns"]) > 0, "3 ms are too much, and that shows")
    hour = write(os.path.join(folder, "hour.yaml"), "guests: [{name: Debian, dir: traces/guest-Debian, nudge: 3600s}]\n")
    run("sync", hour)
    write(hour, "guests: [{name: Debian, dir: traces/guest-Debian, nudge: 3600000000001}]\n")
    check("more than an hour" in run("sync", hour, status=2).stderr, "an hour is allowed, one ns more is not")
    out = os.path.join(folder, "nudge.steal")
    run("index", os.path.join(folder, "nudge.yaml"), "-o", out)
    check(table("sync", out) == [row], "the history contains it")
    check("Debian=+3000000" in run("info", out, "--format", "json").stdout, "and the requested offset")


def check_vcpus(folder):
    """Two VMs; the session swaps the vCPUs of one: it takes precedence over names and sync events."""
    sim = os.path.join(folder, "sim")
    simulate(sim, "critical_task", "--duration", "2s")
    honest = os.path.join(folder, "honest.steal")
    run("index", sim, "-o", honest)
    ubuntu = {r["vcpu"]: r["host_tid"] for r in table("info", honest) if r["vm"] == "Ubuntu"}
    path = write(os.path.join(folder, "swapped.yaml"), f"""
sync: events
host: {{dir: sim/host}}
guests:
  - {{name: Debian, dir: sim/guest-Debian}}
  - {{name: Ubuntu, dir: sim/guest-Ubuntu, vcpus: {{0: {ubuntu['1']}, 1: {ubuntu['0']}}}}}
""")
    out = os.path.join(folder, "swapped.steal")
    run("index", path, "-o", out)
    rows = {(r["vm"], r["vcpu"]): r["host_tid"] for r in table("info", out)}
    check(rows[("Ubuntu", "0")] == ubuntu["1"] and rows[("Ubuntu", "1")] == ubuntu["0"], "the session's vCPUs take precedence")
    check(("Debian", "0") in rows, "other guests are matched as usual")


def check_without_kvm(folder):
    """No kvm events: given vCPU threads and a given clock make preemption visible (the minimum of the paper)."""
    sim = os.path.join(folder, "nokvm")
    simulate(sim, "fibonacci", "--duration", "2s", "--no-kvm", "--perfect-clocks", "--plain-names")
    tids = [r["host_tid"] for r in table("info", index_of(folder, "fibonacci"))]
    path = write(os.path.join(folder, "nokvm.yaml"), f"""
host: {{dir: nokvm/host}}
guests:
  - {{name: Debian, dir: nokvm/guest-Debian, offset: 0, vcpus: {{0: {tids[0]}}}}}
""")
    out = os.path.join(folder, "nokvm.steal")
    run("index", path, "-o", out)
    states = {r["value"] for r in table("intervals", out, "/Virtual Machines/Debian/CPUs/CPU0/Status")}
    check({"RUNNING", "PREEMPTED"} <= states and "VMM" not in states, f"without kvm events: {sorted(states)}")


def index_of(folder, scenario):
    sim, out = os.path.join(folder, "with-kvm"), os.path.join(folder, "with-kvm.steal")
    simulate(sim, scenario, "--duration", "1s")
    run("index", sim, "-o", out)
    return out


def check_mistakes(folder):
    cases = [
        ("", "empty"),
        ("host: [", ": not YAML"),
        ("hosts: {dir: x}\n", ":1:1: unknown key: 'hosts'"),
        ("guests:\n  - {dir: traces/guest-Debian}\n", ":2:5: name: is missing"),
        ("guests: {name: x}\n", ":1:9: guests: "),
        ("host: {dir: traces/host}\nguests:\n  - {name: D, dir: traces/guest-Debian, offset: soon}\n", ":3:49: offset:"),
        ("host: {dir: traces/host}\nguests:\n  - {name: D, dir: traces/guest-Debian, nudge: much}\n", ":3:48: nudge:"),
        ("host: {dir: traces/host}\nguests:\n  - {name: D, dir: traces/guest-Debian, nudge: 61min}\n", "than an hour"),
        ("host: {dir: traces/host}\nguests:\n  - {name: D, vcpus: {zero: 1}}\n", ":3:23: a whole number"),
        ("guests:\n  - {name: D, tsc: {offset: 1, ratio: 1}, vcpus: {0: 1}}\n", ":2:20: tsc: bits is missing"),
        ("guests:\n  - {name: D, tsc: {offset: 1, ratio: 0, bits: 0}, vcpus: {0: 1}}\n", ":2:39: a whole number"),
        ("guests:\n  - {name: D, tsc: {offset: 1, ratio: 1, bits: 64}, vcpus: {0: 1}}\n", ":2:48: a whole number"),
        ("host: {dir: traces/host, weights: [1]}\n", ":1:35: weights: "),
        ("host: {dir: traces/host, weights: {/a: 0}}\n", ":1:40: a whole number"),
        ("host: {dir: traces/host, weights: {/a: 262145}}\n", ":1:40: a whole number"),
        ("host: {dir: traces/host, weights: {a: 1}}\n", ":1:36: weights: "),
        ("host: {dir: traces/host}\nguests:\n  - {name: D, vcpus: {0: 1}, groups: 5}\n", ":3:38: groups: "),
        ("host: {dir: traces/host, groups: 5}\n", ":1:34: groups: "),
        ("host: {dir: traces/host}\nguests:\n  - {name: D, vcpus: {0: 1}, groups: {0: /a}}\n", ":3:39: a whole number"),
        ("host: {dir: traces/host}\nguests:\n  - {name: D, vcpus: {0: 1}, groups: {5: a}}\n", ":3:42: groups: "),
        ("host: {dir: traces/host}\nguests:\n  - {name: D, parent: E, vcpus: {0: 1}, groups: {5: /a}}\n", ":3:49: groups: "),
        ("host: {dir: traces/host}\nguests:\n  - {name: D, vcpus: {0: 1}, groups: {5: " + 33 * "/a" + "}}\n", ":3:42: groups: "),
        ("host: {dir: traces/nowhere}\n", "bad.yaml:1: "),
        ("host: {dir: traces/nowhere}\n", "traces/nowhere: No such file or directory (check the path)"),
        ("host: {dri: traces/host}\n", ":1:8: unknown key: 'dri', did you mean dir? (see"),
        ("sync: magic\nhost: {dir: traces/host}\n", "no such method: 'magic'"),
        ("sync: auto\n", "names no traces"),
    ]
    pipe = os.path.join(folder, "pipe.yaml")
    os.mkfifo(pipe)  # has no writer: must not block
    p = subprocess.run([os.path.join(BUILD, "stealscope"), "sync", pipe], capture_output=True, text=True, timeout=300)
    check(p.returncode == 2 and p.stderr.count("\n") == 1 and "not a regular file" in p.stderr, f"a pipe: {p.stderr.strip()}")
    for text, says in cases:
        path = write(os.path.join(folder, "bad.yaml"), text)
        p = subprocess.run([os.path.join(BUILD, "stealscope"), "sync", path], capture_output=True, text=True, timeout=300)
        check(p.returncode in (1, 2) and p.stderr.count("\n") == 1 and says in p.stderr, f"{text!r}: {p.stderr.strip()}")


def check_confined(folder):
    """Whoever sends a recording writes its session.yaml: it names only what lies below its directory, and no relay daemon. A
    session file that the user names itself may name all."""
    daemon = socket.create_server(("127.0.0.1", 0))
    url = f"net://127.0.0.1:{daemon.getsockname()[1]}/host/h/s"
    elsewhere = os.path.join(folder, "elsewhere")
    os.mkdir(elsewhere)
    os.symlink(f"{TRACE}/host", f"{elsewhere}/link")
    open(f"{folder}/layout.yaml", "w", encoding="utf-8").close()
    session = os.path.join(elsewhere, "session.yaml")
    guest = f"guests: [{{name: Debian, dir: {TRACE}/guest-Debian}}]\n"
    for text in (f"host: {{dir: '{url}'}}\n", f"host: {{dir: {TRACE}/host}}\n", "host: {dir: ../traces/host}\n", "host: {dir: link}\n",
                 "host: {dir: /}\n", "host: {dir: ../..}\n", guest, f"host: {{dir: /}}\n{guest}", f"guests: [{{name: a, dir: '{url}'}}]\n",
                 f"host: {{dir: ., layout: {folder}/layout.yaml}}\n"):
        write(session, text)
        for command in ("index", "info", "summary"):
            p = run(command, elsewhere, status=None, timeout=300)
            check(p.returncode == 2 and p.stderr.count("\n") == 1 and "session.yaml:1:" in p.stderr, f"{text!r}: {p.stderr.strip()}")
    os.unlink(f"{elsewhere}/link")
    write(session, "host: {dir: ../traces/host}\n" + guest)
    run("index", session, "-o", f"{folder}/confined.steal")
    shutil.copytree(f"{TRACE}/host", f"{elsewhere}/host")
    for name in ("host", "./host", f"{elsewhere}/host", "."):
        write(session, f"host: {{dir: {name}}}\n")
        run("info", elsewhere)
    daemon.settimeout(0)
    try:
        daemon.accept()
        check(False, "no command connects to the host of a recording's choice")
    except BlockingIOError:
        pass
    write(session, f"host: {{dir: '{url}'}}\n")
    daemon.settimeout(60)
    p = subprocess.Popen([os.path.join(BUILD, "stealscope"), "info", session], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    daemon.accept()[0].close()
    check(p.wait(60) != 0, "a session file that is named itself may name it")


def check_depth(folder):
    """libyaml's time grows with the square of the depth: 400 KB of brackets would take minutes."""
    for text in ("[" * 400000, "{a: " * 100000, "- " * 100000, "? " * 100000, "[" * 40 + "]" * 40):
        path = write(os.path.join(folder, "deep.yaml"), text)
        check("nested" in run("info", path, status=2, timeout=300).stderr, f"{text[:8]!r}... is refused")


def check_groups(folder):
    """Control groups with weights, outermost first; no attribute for threads in none of them."""
    path, out = os.path.join(folder, "groups.yaml"), os.path.join(folder, "groups.steal")
    for groups, row in (("154: /vms/web/x/vcpu0", '"0:1024/2:10"'), ("154: /vms/we", '"0:1024"'), ("154: /other, 155: /vms", None)):
        write(path, "host: {dir: traces/host, weights: {/vms: 1024, /vms/web/y: 3000, /vms/web/x/vcpu0: 10}}\n"
              "guests:\n  - {name: web, dir: traces/guest-Debian, groups: {" + groups + "}}\n")
        run("index", path, "-o", out)
        rows = [line for line in history_reader.History(out).dump() if line.split()[0] == "/Host/Threads/154/Groups"]
        check([line.split()[3] for line in rows if not line.endswith("null")] == ([row] if row else []), f"{groups}: {row}")


def check_host(folder):
    """--host for a directory is remembered there; other commands know then that no provider takes time."""
    place = os.path.join(folder, "physical")
    simulate(os.path.join(folder, "sim-physical"), "groups", "--seed", "1", "--quota-facts", "none")
    shutil.copytree(os.path.join(folder, "sim-physical", "host"), place)
    check("machine-kind-unknown" in run("summary", place, "--format", "json").stdout, "what the machine is, is unknown")
    run("index", "--host", place)
    session = os.path.join(place, "session.yaml")
    after = run("summary", place, "--format", "json").stdout
    check(os.path.exists(session) and "machine-kind-unknown" not in after, "--host is remembered in session.yaml")
    write(session, "guests:\n- name: vm\n  dir: .\n")
    run("index", "--host", place)
    with open(session, encoding="utf-8") as f:
        check("vm" in f.read(), "a session file of the user stays")


def check_machine_kind(folder):
    """A machine alone needs no clock of a host. Frequencies that it sets show that it is physical, agents that it is a VM."""
    def codes_of(name, *options, rename_to=None):
        place = os.path.join(folder, name)
        simulate(place + "-sim", "groups", "--seed", "1", "--quota-facts", "none", *options)
        shutil.copytree(os.path.join(place + "-sim", "host"), place)
        if rename_to:
            rename(place, rename_to, of=b"burnP6".ljust(len(rename_to), b"\0"))
        return codes("summary", place), run("steal", place, "--by", "thread").stdout
    unknown, physical = codes_of("kind-unknown")[0], codes_of("kind-physical", "--siblings", "2")
    check("machine-kind-unknown" in unknown and "clock-unknown" not in unknown, f"a machine alone: {unknown}")
    check(not {"machine-kind-unknown", "vm-by-thread", "clock-unknown"} & set(physical[0]), f"a physical machine: {physical[0]}")
    check("provider" not in physical[1], "a physical machine has no provider")
    for name in (b"vmtoolsd", b"irq/16-vmwgfx"):
        found, steal = codes_of(f"kind-{len(name)}", rename_to=name)
        check("vm-by-thread" in found and "clock-unknown" not in found, f"{name}: {found}")
        check("provider" in steal, f"{name}: the provider may have taken time as well")


def check_header(folder):
    """The header of a flow contains the quality of the clock, and the reason if it is not synchronized.  A machine alone has no
    clock that could be synchronized."""
    alone = write(os.path.join(folder, "clock.yaml"), "guests: [{name: Debian, dir: traces/guest-Debian}]")
    check("\nclock " not in run("flow", alone, "Debian/151").stdout and not table("sync", alone), "a guest alone: no clock")
    check(json.loads(run("flow", alone, "Debian/151", "--format", "json").stdout)["clock"] == [], "nor in the document")
    cases = [
        (["guests: [{name: Debian, dir: traces/guest-Debian}, {name: other, dir: kind-unknown-sim/host}]"],
         "not synchronized: no trace of its host: none contains kvm events\n         times are on its own clock; open it together with its host\n"),
        (["sync: none", "host: {dir: traces/host}", "guests: [{name: Debian, dir: traces/guest-Debian}]"],
         "not synchronized, host clock assumed, SHARE of its events contained\n"),
        (["host: {dir: traces/host}", "guests: [{name: Debian, dir: traces/guest-Debian, offset: 5.4s, nudge: +3us}]"],
         "not synchronized, offset given, SHARE of its events contained\n         manual offset: +3 us\n"),
        (["host: {dir: traces/host}", "guests: [{name: Debian, dir: traces/guest-Debian}]"],
         "ACCURATE, error bound 31.9 us, SHARE of its events contained\n"),
    ]
    for lines, says in cases:
        path, out = write(os.path.join(folder, "clock.yaml"), "\n".join(lines)), os.path.join(folder, "clock.steal")
        run("index", path, "-o", out)
        text, share = run("flow", out, "Debian/151").stdout, table("sync", out)[0]["containment"]
        says = says.replace("SHARE", f"{100 * float(share or 0):.2f}%")
        check("clock    " + says + "lost " in text and max(map(len, text[text.index("clock"):].split("\n"))) <= 80, says)


def check_texts(folder):
    """The rows of a clock that stepped begin with its times; wakers have their TID and name."""
    pause, disk = os.path.join(folder, "pause.steal"), os.path.join(folder, "disk.steal")
    run("index", recording("pause"), "-o", pause)
    run("index", recording("disk"), "-o", disk)
    heads = [run("sync", file).stdout.split("guest ")[1].split("\n")[0].split() for file in (pause, disk)]
    check(len(table("sync", pause)) > 1 and heads[0][0] == "from", f"a clock with steps: {heads[0]}")
    check(len(table("sync", disk)) == 1 and heads[1][0] == "method", f"one without: {heads[1]}")
    wakers = [r for r in table("flow", disk, "Debian/CPU0") if r["kind"] == "waiting" and r["machine"] == "host" and r["tid"]]
    text = run("flow", disk, "Debian/CPU0", "--threshold", "0").stdout
    check(wakers and all(f"{r['tid']} {r['name']}" in text for r in wakers), f"{len(wakers)} wakers")


with scratch() as tmp:
    session = check_names(tmp)
    check_offset(tmp)
    check_nudge(tmp)
    check_vcpus(tmp)
    check_without_kvm(tmp)
    check_mistakes(tmp)
    check_confined(tmp)
    check_depth(tmp)
    check_groups(tmp)
    check_machine_kind(tmp)
    check_host(tmp)
    check_header(tmp)
    check_texts(tmp)
