"""`stealscope record` as root: descriptors that it passes on, directories that it refuses or removes, permissions of its files,
names of VMs."""
import os
import signal
import stat
import sys

from e2e import check, is_root, is_sanitized, run, scratch, skip
from test_record_cli import make_process
from test_record_hostile import attempt, make_machine, through


def check_descriptors(tmp):
    """The command inherits no descriptor of the trace, but those that the user passes on."""
    mine = os.open(os.path.join(tmp, "root/proc/meminfo"), os.O_RDONLY)
    os.set_inheritable(mine, True)
    p = attempt(tmp, "fd", "--host-only", "--no-index", "--", "sh", "-c", "sleep 0.2; readlink /proc/self/fd/* >&2; true",
                pass_fds=[mine])
    os.close(mine)
    check("instances" not in p.stderr and "meminfo" in p.stderr, f"descriptors of the command: {p.stderr}")
    attempt(tmp, "child", "--host-only", "--no-index", "--", "sh", "-c", f"sleep 600 >/dev/null 2>&1 & echo $! >{tmp}/pid")
    with open(f"{tmp}/pid", encoding="ascii") as f:
        os.kill(int(f.read()), signal.SIGKILL)  # it lives
    print("ok   the recorder does not wait for children of the command")


def check_directories(tmp):
    """An existing directory is never removed; one to which others can write, or of another user, is refused."""
    def path(name, mode=0o755, owner=None):
        full = os.path.join(tmp, name)
        os.mkdir(full)
        os.chmod(full, mode)
        if owner:
            os.chown(full, owner, owner)
        return full

    for mode in (0o777, 0o775, 0o1777):
        p = attempt(tmp, path(f"mode{mode:o}", mode), "--host-only", "-t", "100ms", status=1)
        check("other users can write" in p.stderr and os.listdir(f"{tmp}/mode{mode:o}") == [], f"refused and kept: {p.stderr}")
    if is_root():
        p = attempt(tmp, path("owner", owner=1000), "--host-only", "-t", "100ms", status=1)
        check("not an empty directory that you own" in p.stderr and os.path.isdir(f"{tmp}/owner"), f"refused, kept: {p.stderr}")
    attempt(tmp, path("refused"), "nosuchvm", status=2)
    check(os.path.isdir(f"{tmp}/refused"), "kept after a refused VM")
    attempt(tmp, path("bad"), "--host-only", "-t", "100000h", status=None)
    check(os.path.isdir(f"{tmp}/bad"), "kept after a recording that did not begin")
    attempt(tmp, "own", "--host-only", "-t", "11574d", status=None)
    check(not os.path.exists(f"{tmp}/own"), "a directory that record created is removed if nothing was recorded")


def check_modes(tmp):
    """Nobody else can read any file of a recording, nor the histories beside it, whatever the umask is."""
    for umask in (0, 0o022):
        folder = os.path.join(tmp, f"modes{umask:o}")
        os.mkdir(folder, 0o755)
        attempt(tmp, folder, "-t", "300ms", f"web={through('honest')}", f"db={through('honest')}",
                preexec_fn=lambda u=umask: os.umask(u))
        os.remove(f"{folder}/stealscope.steal")
        run("summary", folder, preexec_fn=lambda u=umask: os.umask(u))
        open_ones = [os.path.join(d, f) for d, below, files in os.walk(folder) for f in below + files
                     if stat.S_IMODE(os.stat(os.path.join(d, f)).st_mode) & 0o077]
        check(os.path.exists(f"{folder}/stealscope.steal") and not open_ones, f"umask {umask:o}: private files {open_ones}")
        run("index", folder, "-o", f"{folder}.steal", preexec_fn=lambda u=umask: os.umask(u))
        check(stat.S_IMODE(os.stat(f"{folder}.steal").st_mode) == 0o666 & ~umask, "a history elsewhere has the usual mode")


def check_names(tmp):
    """Names of VMs are unique, and a name takes precedence over the PID of another VM."""
    root = os.path.join(tmp, "root")
    for pid, name in ((500, "web"), (600, "web-300"), (700, "host"), (800, "host-700"), (900, "400")):
        make_process(root, pid, ["qemu", "-name", name], {pid: "qemu", pid + 10: "CPU 0/KVM"},
                     [(14, "/dev/kvm"), (15, "anon_inode:kvm-vm"), (20, "anon_inode:kvm-vcpu:0")])
    p = attempt(tmp, "unused", "--check", "--format", "csv", status=5)
    names = [line.split(",")[0] for line in p.stdout.splitlines()[1:]]
    check(len(names) == 8 and len(set(names)) == len(names), f"unique: {names}")
    p = attempt(tmp, "unused", "--check", "--format", "csv", "400=cmd:exit 1", status=5)
    check([x.split(",")[0] for x in p.stdout.splitlines() if "cmd:" in x] == ["400"], f"only the VM named 400: {p.stdout}")


def main():
    if is_sanitized():
        skip("sanitizers must be preloaded first, before instances.so")
    if "cannot record" in run("record", "--check", status=None).stderr:
        skip("this build cannot record")
    with scratch() as tmp:
        make_machine(tmp)
        check_descriptors(tmp)
        check_directories(tmp)
        check_modes(tmp)
        check_names(tmp)
    return 0


if __name__ == "__main__":
    sys.exit(main())
