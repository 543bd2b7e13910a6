"""A shell that leaves little room for the stack (ulimit -s 64) costs nothing."""
import os
import resource
import shutil
import sys

from e2e import DATA, check, is_sanitized, run, scratch

LITTLE = 64 << 10  # bytes; the kernel may take 8 KiB of them, the environment and the loader theirs


def little():
    resource.setrlimit(resource.RLIMIT_STACK, (LITTLE, LITTLE))


def compare(*args):
    """The same answer with much room and with little."""
    want, got = run(*args, status=None), run(*args, status=None, preexec_fn=little)
    check((want.returncode, want.stdout, want.stderr) == (got.returncode, got.stdout, got.stderr),
          f"{args[0]}: {want.returncode}, with little room {got.returncode} {got.stderr.strip()}")


def main(tmp):
    folder = os.path.join(tmp, "traces")  # `events` keeps a history beside them
    shutil.copytree(os.path.join(DATA, "fibonacci"), folder)
    history, again, script = (os.path.join(tmp, name) for name in ("h.steal", "again.steal", "script"))
    run("index", folder, "-o", history)
    run("index", folder, "-o", again, preexec_fn=little)
    with open(history, "rb") as one, open(again, "rb") as other:
        check(one.read() == other.read(), "the same history")
    compare("sync", folder)
    compare("events", folder, "--at", "50%")
    for command in ("info", "gaps", "steal", "summary", "waits", "exits"):
        compare(command, history)
    compare("explain", history, "Debian")
    compare("intervals", history, "/Host/CPUs/CPU0/Current Thread")
    compare("diff", history, history)
    run("cut", history, "--from", "10%", "--to", "20%", "-o", os.path.join(tmp, "cut.steal"), preexec_fn=little)
    run("picture", history, "-o", os.path.join(tmp, "p.svg"), preexec_fn=little)
    for form in ("chrome", "perfetto"):
        run("export", history, "--to", f"{form}:{os.path.join(tmp, form)}", preexec_fn=little)
    with open(script, "w", encoding="utf-8"):
        pass
    compare("view", history, "--script", script)


if is_sanitized():  # which need much of it themselves
    sys.exit(77)
with scratch() as folder_of_this_test:
    main(folder_of_this_test)
