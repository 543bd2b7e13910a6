"""Answers are the same with a small stack (ulimit -s 64)."""
import os
import resource
import shutil

from e2e import DATA, check, is_sanitized, run, scratch, skip

SMALL = 64 << 10  # bytes; includes up to 8 KiB of the kernel, the environment, and the loader's use
KEPT = ("HOME", "PATH", "TMPDIR")  # make's variables can fill half of the stack


def shrink_environment():
    for name in set(os.environ) - set(KEPT):
        del os.environ[name]


def limit_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (SMALL, SMALL))


def compare(*args, status=0):
    """The command has the same output with the usual and with a small stack."""
    want, got = run(*args, status=status), run(*args, status=None, preexec_fn=limit_stack)
    check((want.returncode, want.stdout, want.stderr) == (got.returncode, got.stdout, got.stderr),
          f"{args[0]}: status {want.returncode}, with a small stack {got.returncode} {got.stderr.strip()}")


def main(tmp):
    folder = os.path.join(tmp, "traces")  # `events` writes its history into this directory
    shutil.copytree(os.path.join(DATA, "fibonacci"), folder)
    history, again, script = (os.path.join(tmp, name) for name in ("h.steal", "again.steal", "script"))
    run("index", folder, "-o", history)
    run("index", folder, "-o", again, preexec_fn=limit_stack)
    with open(history, "rb") as one, open(again, "rb") as other:
        check(one.read() == other.read(), "the same history")
    compare("sync", folder)
    compare("events", folder, "--at", "50%")
    for command in ("info", "gaps", "steal", "summary", "waits", "exits"):
        compare(command, history)
    compare("explain", history, "Debian")
    compare("intervals", history, "/Host/CPUs/CPU0/Current Thread")
    compare("diff", history, history)
    run("cut", history, "--from", "10%", "--to", "20%", "-o", os.path.join(tmp, "cut.steal"), preexec_fn=limit_stack)
    run("picture", history, "-o", os.path.join(tmp, "p.svg"), preexec_fn=limit_stack)
    run("export", history, "--to", f"perfetto:{os.path.join(tmp, 'perfetto')}", preexec_fn=limit_stack)
    with open(script, "w", encoding="utf-8"):
        pass
    compare("view", history, "--script", script)


if is_sanitized():
    skip("sanitizers need a large stack")
shrink_environment()
with scratch() as scratch_folder:
    main(scratch_folder)
