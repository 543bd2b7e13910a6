"""VM entries and exits of HVM and PVH domains in xentrace files: times in guest mode, reasons, hypercalls, wakers, damage.

tests/data/xen_pvh.tar.xz is a part of a recording of Xen 4.17 (credit2, SVM) in software emulation, without the scheduler's
internal records: two PVH domains share a pCPU, Domain-0 has the other one."""
import collections
import os
import tarfile

import xentrace
from e2e import DATA, check, codes, run, scratch, table
from test_xen import INFO, LIST, idle, merged, ns, statuses, sums, untraced, write
from xentrace import (BLOCKED, IDLE, LOST, PV_HYPERCALL, RUNNABLE, RUNNING, VM_ENTRY, VM_EXIT, VM_EXIT_64, VM_HYPERCALL, Writer)

D0, WEB, DB = (0, 0), (1, 0), (2, 0)
VMX, SVM = "hw_caps : bfebfbff:77fef3ff:2c100800:00000121:0000000f\n", "hw_caps : 178bf3ff:f6d8320b:2e500800:244037ff:0000000f\n"
CONSOLE = "(XEN) HVM: ASIDs enabled.\n(XEN) HVM: {} enabled\n"
REASONS = {0x47: "NM excp", 0x60: "interrupt", 0x64: "vintr", 0x72: "cpuid", 0x78: "hlt", 0x7C: "msr"}
CALLS = {24: "hypercall vcpu_op", 32: "hypercall event_channel_op"}


def reasons_in_file(data):
    """Returns {(domain, reason): number} of the VM exits of a file."""
    found, current, pending, at, cpu = collections.Counter(), {}, {}, 0, None
    while at < len(data):
        head = int.from_bytes(data[at:at + 4], "little")
        event, words, skip = head & 0xFFFFFFF, head >> 28 & 7, 4 + 8 * (head >> 31)
        word = [int.from_bytes(data[at + skip + 4 * i:at + skip + 4 * i + 4], "little") for i in range(words)]
        if event == xentrace.CPU_CHANGE:
            cpu = word[0]
        elif event == VM_HYPERCALL:
            pending[cpu] = CALLS[word[0]]
        elif cpu in pending:
            found[current[cpu] >> 16, pending.pop(cpu)] += 1
        if event & ~0x330 == 0x21001 and event >> 4 & 3 == RUNNING:
            current[cpu] = word[0]
        elif event == VM_EXIT_64 and cpu in current:
            pending[cpu] = REASONS.get(word[0], str(word[0]))
        at += skip + 4 * words
    return found


def check_shipped(tmp):
    with tarfile.open(os.path.join(DATA, "xen_pvh.tar.xz")) as tar:
        tar.extractall(tmp)
    folder, history, millihertz = f"{tmp}/xen_pvh", f"{tmp}/pvh.steal", 2596096 * 10**6
    run("index", folder, "-o", history)
    with open(f"{folder}/host/xentrace.bin", "rb") as f:
        data = f.read()
    records = xentrace.read(data)
    modes = xentrace.guest_mode(records)
    names = {0: "Domain-0", 1: "Debian", 2: "Ubuntu"}
    check(set(modes) == {(1, 0), (2, 0)}, "the two PVH domains have VM entries")
    for (domain, number), rows in xentrace.intervals(records).items():
        if domain == IDLE:
            continue
        parts = xentrace.split_modes(rows, modes[domain, number]) if (domain, number) in modes else rows
        want = merged([(ns(b, millihertz), ns(e, millihertz), s if isinstance(s, str) else untraced(s)) for b, e, s, *_ in parts])
        got = statuses(history, names[domain], number)
        got[-1] = (got[-1][0], got[-1][1] - 1, got[-1][2])
        wrong = [(a, b) for a, b in zip(merged(got), want) if a != b]
        check(merged(got) == want, f"{names[domain]}/{number}: {len(want)} intervals, in and out of guest mode {wrong[:3]}")
    want = {(names[domain], reason): n for (domain, reason), n in reasons_in_file(data).items()}
    rows = table("exits", history)
    got = {(r["machine"], r["reason"]): int(r["count"]) for r in rows if r["machine"] != "Domain-0"}
    check(got == want and len(got) > 14, f"reasons and their numbers {got} {want}")
    check({r["isa"] for r in rows if r["machine"] != "Domain-0"} == {"SVM"}, "they are reasons of SVM")
    woken = {(r["vcpu"], r["by_machine"], r["by_name"]): int(r["count"]) for r in table("waits", history, "Domain-0")}
    events = {k: n for k, n in woken.items() if k[1]}
    check(events == {("0", "host", "Domain-0"): 20, ("0", "host", "Debian"): 1, ("1", "host", "Domain-0"): 14, ("1", "host", "Ubuntu"): 3},
          f"events wake vCPUs of Domain-0 {woken}")


def exits(tmp, record, texts, words=(12, 0x1000, 0)):
    """Returns {reason: isa} of a file with one exit."""
    w = Writer()
    w.switch(1000, 0, idle(0), RUNNABLE, D0)
    w.switch(2000, 1, idle(1), RUNNABLE, WEB)
    w.put(3000, 1, VM_ENTRY)
    w.put(4000, 1, record, *words)
    w.put(5000, 1, VM_ENTRY)
    w.put(6000, 1, record, *words)
    w.switch(7000, 1, WEB, BLOCKED, idle(1))
    folder = write(f"{tmp}/isa", w.file(), (("xl-info.txt", INFO), ("xl-list.txt", LIST), *texts))
    run("index", folder, "-o", f"{tmp}/isa.steal")
    return {r["reason"]: r["isa"] for r in table("exits", f"{tmp}/isa.steal")}


def check_reasons(tmp):
    """Before Xen 4.19 the record does not show the processor of a reason: the texts do, or a reason that only one has (18 is
    VMCALL or a write to CR2)."""
    for what, want in (((VM_EXIT_64, ()), {"HLT": "VMX"}), ((VM_EXIT_64, (), (0x78, 0, 0)), {"hlt": "SVM"}),
                       ((VM_EXIT_64, (), (18, 0, 0)), {"18": ""}), ((VM_EXIT_64, (("a", VMX),)), {"HLT": "VMX"}),
                       ((VM_EXIT, (("a", VMX),), (0x8000000C, 0x1000)), {"HLT": "VMX"}),
                       ((VM_EXIT, (("a", VMX),), (12,)), {"HLT": "VMX"}), ((VM_EXIT, (("a", VMX),), ()), {}),
                       ((VM_EXIT_64, (("a", SVM),), (0x78, 0, 0)), {"hlt": "SVM"}),
                       ((VM_EXIT_64, (("a", CONSOLE.format("SVM")),), (0x78, 0, 0)), {"hlt": "SVM"}),
                       ((VM_EXIT_64, (("a", CONSOLE.format("VMX")),)), {"HLT": "VMX"}),
                       ((VM_EXIT_64, (("a", "hw_caps : 1:2\n"),)), {"HLT": "VMX"}),
                       ((0x81103, (), (0x400, 0, 0)), {"npf": "SVM"}), ((0x81003, (), (0x400, 0)), {"npf": "SVM"})):
        got = exits(tmp, *what)
        check(got == want, f"reason of {what}: {got}")


def check_loss(tmp):
    """During a loss and until the next entry or exit, it is unknown whether the guest executes."""
    w, history = Writer(), f"{tmp}/loss.steal"
    w.switch(1000, 0, idle(0), RUNNABLE, D0)
    w.switch(2000, 1, idle(1), RUNNABLE, WEB)
    w.put(3000, 1, VM_ENTRY)
    w.put(50000, 1, LOST, 7, WEB[0], 20000, 0)
    w.put(60000, 1, VM_EXIT_64, 0x78, 0, 0)
    w.put(70000, 1, VM_ENTRY)
    w.put(80000, 1, VM_EXIT_64, 0x78, 0, 0)
    w.switch(90000, 1, WEB, BLOCKED, idle(1))
    w.switch(99000, 0, D0, BLOCKED, idle(0))
    run("index", write(f"{tmp}/loss", w.file(), (("xl-info.txt", INFO + SVM), ("xl-list.txt", LIST))), "-o", history)
    total = sums(history, "/Virtual Machines/web server/CPUs/CPU0/Status")
    check((total["RUNNING"], total["UNKNOWN"]) == (ns(17000 + 10000), ns(40000)), f"guest mode and unknown time {total}")


def check_wakers(tmp):
    """A wakeup right after the hypercall event_channel_op is by its vCPU, others are not."""
    w, history = Writer(3), f"{tmp}/wake.steal"
    ms = 2 * 10**6
    w.switch(1000, 0, idle(0), RUNNABLE, D0)
    w.switch(2000, 1, idle(1), RUNNABLE, WEB)
    w.put(2500, 1, VM_ENTRY)
    want = {}
    for i, (sender, wait, extra) in enumerate((("host/4200000", 9000, ()), ("host/4210000", 9000, ()), ("", 201000, ()), ("", 9000, (23,)),
                                               ("host/4200000", 9000, ()))):
        at, by_web = (i + 1) * ms, sender == "host/4210000"
        if by_web:
            w.put(at, 1, VM_EXIT_64, 0x81, 0, 0)
            w.put(at, 1, VM_HYPERCALL, 32)
        else:
            w.put(at, 0, PV_HYPERCALL, 32)
        for number in extra:
            w.put(at + 100, 0, PV_HYPERCALL, number)
        w.state(at + wait, 1 if by_web else 0, DB, BLOCKED, RUNNABLE)
        w.switch(at + wait + 100, 2, idle(2), RUNNABLE, DB)
        w.switch(at + ms // 2, 2, DB, BLOCKED, idle(2))
        want[ns(at + wait)] = sender
    w.switch(9 * ms, 0, D0, BLOCKED, idle(0))
    run("index", write(f"{tmp}/wake", w.file(), (("xl-info.txt", INFO + SVM), ("xl-list.txt", LIST))), "-o", history)
    rows = table("intervals", history, "/Host/Threads/4220000/Woken By")
    got = {t: next((r["value"] for r in rows if int(r["start"]) <= t <= int(r["end"])), "") for t in want}
    check(got == want, f"wakers {got}")
    waits = {(r["by_machine"], r["by_name"]): int(r["count"]) for r in table("waits", history, "db") if r["by_machine"]}
    check(waits == {("host", "Domain-0"): 2, ("host", "web server"): 1}, f"waits lists them {waits}")
    check("kvm" not in "".join(r["event"] for r in table("events", history, "host", "--at", "50%", "--around", "1s")),
          "no event is called one of KVM")


if __name__ == "__main__":
    with scratch() as directory:
        check_shipped(directory)
        check_reasons(directory)
        check_loss(directory)
        check_wakers(directory)
