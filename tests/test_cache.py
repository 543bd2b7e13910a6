"""Automatically built histories are cached, and reused as long as their traces are unchanged."""
import os
import shutil
import subprocess

from e2e import DATA, PROGRAM, check, become_other, has_other_user, run, scratch

AGAIN = "indexing again"


def answer(folder, env=None):
    return run("info", folder, env=env).stderr


def check_changes(tmp):
    folder = os.path.join(tmp, "traces")
    shutil.copytree(os.path.join(DATA, "fibonacci"), folder)
    metadata = os.path.join(folder, "host", "kernel", "metadata")
    answer(folder)
    check(os.path.exists(os.path.join(folder, "stealscope.steal")), "it is stored next to the traces")
    check(AGAIN not in answer(folder), "and reused")
    with open(metadata, "r+b") as f:
        data = f.read()
        at = data.index(b'hostname = "') + len(b'hostname = "')
        f.seek(at)
        f.write(b"H")
    said = answer(folder)
    check(AGAIN in said and "metadata changed" in said, f"metadata of the same size, with another byte: {said.strip()}")
    check(AGAIN not in answer(folder), "only once")
    with open(os.path.join(folder, "guest-Debian", "kernel", "ch_0"), "ab") as f:
        f.write(bytes(4096))
    said = answer(folder)
    check(AGAIN in said and "ch_0 changed its size" in said, f"a longer stream: {said.strip()}")
    shutil.rmtree(os.path.join(folder, "guest-Debian", "kernel", "index"))
    said = answer(folder)
    check(AGAIN in said and "trace files instead of" in said, f"missing files: {said.strip()}")


def check_readonly(tmp):
    """The history of a read-only directory is stored in the user's cache directory, one for each directory."""
    folder, other, own = os.path.join(tmp, "readonly"), os.path.join(tmp, "other"), os.path.join(tmp, "own")
    shutil.copytree(os.path.join(DATA, "fibonacci"), folder)
    shutil.copytree(folder, other)
    os.mkdir(own)
    os.chmod(tmp, 0o755)
    os.chmod(own, 0o777)
    os.chmod(folder, 0o555)
    os.chmod(other, 0o555)

    if not has_other_user():
        print("     not run: root may read all files, and this user namespace has no other user")
        return
    try:
        for number, at in enumerate((folder, other, folder)):
            p = subprocess.run([PROGRAM, "info", at], env=dict(os.environ, XDG_CACHE_HOME=own), capture_output=True, text=True,
                               preexec_fn=become_other, check=False, timeout=300)
            kept = [name for _, _, names in os.walk(own) for name in names]
            check(p.returncode == 0 and len(kept) == min(number + 1, 2) and kept[0].endswith(".steal"), f"stored as {kept} {p.stderr.strip()}")
        check("stealscope.steal" not in os.listdir(folder), "and not next to the traces")
    except PermissionError:
        print("     another user cannot execute the program: not tested")
    os.chmod(folder, 0o755)
    os.chmod(other, 0o755)


def check_full(tmp):
    """The history of a recording on a full disk is stored in the user's cache directory."""
    folder, own = os.path.join(tmp, "full"), os.path.join(tmp, "own-full")
    source = os.path.join(DATA, "fibonacci")
    size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(source) for name in names)
    os.mkdir(folder)
    mount = shutil.which("mount")
    if not mount or subprocess.run([mount, "-t", "tmpfs", "-o", f"size={size + 200000}", "tmpfs", folder], capture_output=True,
                                   check=False).returncode:
        print("     tmpfs cannot be mounted: not tested")
        return
    try:
        copy = os.path.join(folder, "recording")
        shutil.copytree(source, copy)
        fill = os.open(os.path.join(folder, "fill"), os.O_WRONLY | os.O_CREAT)
        try:
            while os.write(fill, bytes(4096)):
                pass
        except OSError:
            pass  # the disk is full
        os.close(fill)
        p = run("info", copy, env={"XDG_CACHE_HOME": own}, status=None)
        kept = [name for _, _, names in os.walk(own) for name in names]
        check(p.returncode == 0 and len(kept) == 1, f"full disk: stored as {kept} {p.stderr.strip()}")
        check("stealscope.steal" not in os.listdir(copy), "and nothing next to the traces")
    finally:
        subprocess.run(["umount", folder], check=False)


with scratch() as tmp:
    check_changes(tmp)
    check_readonly(tmp)
    check_full(tmp)
