"""A history made on the way to an answer is kept, and used again for as long as its traces are what they were."""
import os
import shutil
import subprocess

from e2e import DATA, PROGRAM, check, run, scratch

SAID = "indexing again"


def answer(folder, env=None):
    return run("info", folder, env=env).stderr


def check_changes(tmp):
    folder = os.path.join(tmp, "traces")
    shutil.copytree(os.path.join(DATA, "fibonacci"), folder)
    metadata = os.path.join(folder, "host", "kernel", "metadata")
    answer(folder)
    check(os.path.exists(os.path.join(folder, "stealscope.steal")), "it is kept beside the traces")
    check(SAID not in answer(folder), "and found again")
    with open(metadata, "r+b") as f:
        data = f.read()
        at = data.index(b'hostname = "') + len(b'hostname = "')
        f.seek(at)
        f.write(b"H")
    said = answer(folder)
    check(SAID in said and "metadata changed" in said, f"metadata of the same size, with another byte: {said.strip()}")
    check(SAID not in answer(folder), "once")
    with open(os.path.join(folder, "guest-Debian", "kernel", "ch_0"), "ab") as f:
        f.write(bytes(4096))
    said = answer(folder)
    check(SAID in said and "ch_0 changed its size" in said, f"a stream that has grown: {said.strip()}")
    shutil.rmtree(os.path.join(folder, "guest-Debian", "kernel", "index"))
    said = answer(folder)
    check(SAID in said and "trace files where there were" in said, f"files that are gone: {said.strip()}")


def check_readonly(tmp):
    """Of a folder that this user may not write to it is kept with the user's own files."""
    folder, own = os.path.join(tmp, "readonly"), os.path.join(tmp, "own")
    shutil.copytree(os.path.join(DATA, "fibonacci"), folder)
    os.mkdir(own)
    os.chmod(tmp, 0o755)
    os.chmod(own, 0o777)
    os.chmod(folder, 0o555)

    def as_user():
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
    try:
        p = subprocess.run([PROGRAM, "info", folder], env=dict(os.environ, XDG_CACHE_HOME=own), capture_output=True, text=True,
                           preexec_fn=as_user, check=False, timeout=120)
        kept = [name for _, _, names in os.walk(own) for name in names]
        check(p.returncode == 0 and len(kept) == 1 and kept[0].endswith(".steal"), f"kept as {kept} {p.stderr.strip()}")
        check("stealscope.steal" not in os.listdir(folder), "and not beside the traces")
    except PermissionError:
        print("     the program itself cannot be reached by another user: not tried")
    os.chmod(folder, 0o755)


with scratch() as tmp:
    check_changes(tmp)
    check_readonly(tmp)
