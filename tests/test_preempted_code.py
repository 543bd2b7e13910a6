"""Guest code at which a vCPU was preempted: counted on a real recording by another reader, with names of functions."""
import os

from e2e import DATA, check, run, scratch, table

# Preemptions of the vCPU's thread by its last exit: user space, and kernel instructions modulo 2 MiB.
USER, KERNEL = 338, {"0x1f1804", "0x0cd17a", "0x074482"}


def refused(history, path, text, status=2):
    p = run("gaps", history, "--inside", "--kallsyms", path, status=status)
    check(p.stdout == "" and p.stderr.count("\n") == 1 and text in p.stderr, f"refused: {text}")


with scratch() as folder:
    full, alone = f"{folder}/full.steal", f"{folder}/host.steal"
    run("index", f"{DATA}/fibonacci", "-o", full)
    run("index", "--host", f"{DATA}/fibonacci/host", "-o", alone)
    for history in (full, alone):
        rows = table("gaps", history, "--inside")
        check([(r["vcpu"], int(r["count"])) for r in rows if r["mode"] == "user"] == [("0", USER)], f"{USER} times in user space")
        kernel = [r for r in rows if r["mode"] == "kernel"]
        check({r["address"] for r in kernel} == KERNEL and all(r["count"] == "1" for r in kernel), "and in the kernel where it was")
        machine = rows[0]["machine"]
        preempted = sum(int(r["end"]) - int(r["start"]) + 1
                        for r in table("intervals", history, f"/Virtual Machines/{machine}/CPUs/CPU0/Status")
                        if r["value"] == "PREEMPTED")
        check(0.999 * preempted < sum(int(r["total_ns"]) for r in rows) <= preempted, "all of its time preempted")
        check(abs(sum(float(r["share"]) for r in rows) - 1) < 1e-6, "shares of that")
    text = " ".join(run("gaps", full, "--inside").stdout.split())
    check("inside the guest's kernel: 3 of 341 preemptions; candidates for lock-holder preemption" in text,
          "they are candidates, and called so")

    at = {f"0x{int(r['value']) % 2**21:06x}": int(r["value"]) % 2**64
          for r in table("intervals", full, "/Virtual Machines/Debian/CPUs/CPU0/Preempted At") if r["value"] not in ("", "0")}
    check(set(at) == KERNEL, "the history has the whole addresses")
    names = f"{folder}/kallsyms"
    lines = [(at["0x1f1804"] - 4, "T", "do_one"), (at["0x0cd17a"], "t", "do_two\t[module]"), (at["0x074482"] - 1, "W", "do_three"),
             (at["0x074482"], "D", "no_function"), (max(at.values()) + 64, "T", "_etext")]
    with open(names, "w", encoding="utf-8") as f:
        f.writelines(f"{a:016x} {t} {n}\n" for a, t, n in reversed(lines))
    rows = table("gaps", full, "--inside", "--kallsyms", names)
    check({r["symbol"] for r in rows} == {"do_one", "do_two", "do_three", ""}, "each in its function")
    check({r["address"] for r in rows if r["symbol"] == "do_one"} == {"0x1f1800"}, "whose address it is then")
    with open(names, "w", encoding="utf-8") as f:  # one function contains all of them
        f.write(f"{min(at.values()):x} T all\n{max(at.values()) + 1:x} T end\n")
    if max(at.values()) - min(at.values()) < 1 << 20:
        check([r["count"] for r in table("gaps", full, "--inside", "--kallsyms", names) if r["symbol"] == "all"] == ["3"], "as one row")
    with open(names, "w", encoding="utf-8") as f:  # symbols of another boot
        f.writelines(f"{a + (1 << 30):016x} {t} {n}\n" for a, t, n in lines)
    p = run("gaps", full, "--inside", "--kallsyms", names, "--format", "csv")
    check("kallsyms" in p.stderr and "do_" not in p.stdout, "of another boot: no name is given")

    for content, text in ((b"", "all addresses are 0"), (b"0000000000000000 T _text\n", "all addresses are 0"),
                          (b"\x7fELF\x02\x01\0\0", "line 1: not"), (b"ffffffff81000000 T a\nffffffff81000000\n", "line 2: not"),
                          (b"ffffffff81000000 T " + b"x" * 5000 + b"\n", "line 1: not"),
                          (b"1ffffffff81000000 T a\n", "line 1: not"), (b"ffffffff81000000 T \n", "line 1: not")):
        with open(names, "wb") as f:
            f.write(content)
        refused(full, names, text)
    refused(full, f"{folder}/none", "none", status=2)
    refused(full, folder, folder, status=2)
    run("gaps", full, "--kallsyms", names, status=1)
    run("gaps", full, "Debian/151", "--inside", status=1)
    guest = f"{folder}/guest.steal"
    run("index", "--guest", os.path.join(f"Debian={DATA}", "fibonacci", "guest-Debian"), "-o", guest)
    p = run("gaps", guest, "--inside", "--format", "csv")
    check(p.stdout.count("\n") == 1 and "guest_rip" in p.stderr, "without the host: what it would take")
