"""Root writes into a directory that other users may write to, such as /tmp, while another user plants links, files and
directories under the names of the output: nothing outside is written, and what was written belongs to root alone."""
import os
import shutil
import stat
import subprocess

from e2e import DATA, check, is_root, is_sanitized, run, scratch, skip
from test_record_hostile import attempt, make_machine

PYTHON = "/usr/bin/python3"
ATTACKER = r"""
import os, shutil, sys, time
shared, outside, *names = sys.argv[1:]
def clear(path):
    for remove in os.unlink, os.rmdir, shutil.rmtree:
        try:
            remove(path)
            return
        except OSError:
            pass
def plant(path, kind):
    try:
        if kind < 3:
            os.symlink(outside + ("", "/precious", "/new")[kind], path)
        elif kind == 3:
            open(path, "w").close()
            os.chmod(path, 0o666)
        else:
            os.mkdir(path, 0o777)
            for below in "host", "session.yaml", "gap.csv", "run.csv":
                os.symlink(outside + "/new", path + "/" + below)
    except OSError:
        pass
print("ready", flush=True)
turn = 0
while True:
    for name in names:
        clear(f"{shared}/{name}")
        if turn % 3 == 0:
            plant(f"{shared}/{name}", turn // 3 % 5)
    time.sleep(0.001)
    turn += 1
"""


def check_rounds(tmp, rounds):
    shared, outside, history, trace = (os.path.join(tmp, name) for name in ("shared", "outside", "h.steal", "trace"))
    shutil.copytree(os.path.join(DATA, "fibonacci"), trace)
    run("index", trace, "-o", history)
    for folder, mode in ((shared, 0o1777), (outside, 0o755)):
        os.mkdir(folder)
        os.chmod(folder, mode)
    with open(f"{outside}/precious", "w", encoding="ascii") as f:
        f.write("precious")
    commands = {"recording": None, "x.steal": ("index", trace, "-o"), "cut.steal": ("cut", history, "--from", "10%", "--to", "50%", "-o"),
                "ticket.html": ("ticket", history, "-o"), "p.svg": ("picture", history, "-o"), "csv": ("export", history, "--to", "csv:"),
                "db": ("export", history, "--to", "sqlite:")}
    if "without libsqlite3" in run("--version").stdout:
        del commands["db"]
    attacker = subprocess.Popen(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", PYTHON, "-c", ATTACKER, shared, outside,
                                 *commands], stdout=subprocess.PIPE, cwd="/")
    written = dict.fromkeys(commands, 0)
    try:
        attacker.stdout.readline()
        for _ in range(rounds):
            for name, command in commands.items():
                path = os.path.join(shared, name)
                if not command:
                    p = attempt(tmp, path, "--host-only", "-t", "50ms", "--no-index", status=None)
                elif command[-1] == "-o":
                    p = run(*command, path, status=None)
                else:
                    p = run(*command[:-1], command[-1] + path, status=None)
                with open(f"{outside}/precious", encoding="ascii") as f:
                    unchanged = f.read() == "precious"
                if not unchanged or os.listdir(outside) != ["precious"]:
                    check(False, f"{name}: status {p.returncode}; nothing outside is written: {os.listdir(outside)}")
                try:
                    now = os.lstat(path)
                except FileNotFoundError:
                    continue
                if now.st_uid == 0:
                    written[name] += 1
                    if now.st_mode & 0o022 or stat.S_ISLNK(now.st_mode):
                        check(False, f"{name}: only root may change it: {now.st_mode:o}")
                    (shutil.rmtree if stat.S_ISDIR(now.st_mode) else os.unlink)(path)
    finally:
        attacker.kill()
        attacker.wait()
    check(True, f"{rounds} rounds; written: {written}")


def check_links(tmp):
    """A link of another user is not followed, an own one is."""
    path, target = os.path.join(tmp, "link.svg"), os.path.join(tmp, "target.svg")
    for owner, status in ((65534, 4), (0, 0)):
        run("picture", f"{tmp}/h.steal", "-o", target)  # a picture may be replaced
        with open(target, "a", encoding="utf-8") as f:
            f.write("precious")
        os.symlink(target, path)
        os.lchown(path, owner, owner)
        run("picture", f"{tmp}/h.steal", "-o", path, status=status)
        with open(target, encoding="utf-8") as f:
            check(f.read().endswith("precious") == (owner != 0) and os.path.islink(path), f"a link of user {owner}: status {status}")
        os.unlink(path)


def check_directories(tmp):
    """A link of another user in place of a directory is not followed, an own one is; also below a directory of that user."""
    path, target = os.path.join(tmp, "link"), os.path.join(tmp, "target")
    for owner, status in ((65534, 4), (0, 0)):
        for link in (path, f"{path}/machine"):
            os.mkdir(target)
            if link != path:
                os.mkdir(path)
                os.chown(path, owner, owner)
            os.symlink(target, link)
            os.lchown(link, owner, owner)
            p = run("export", f"{tmp}/h.steal", "--to", f"csv:{path}", "--only", "machine", status=status)
            check((os.listdir(target) == []) == (owner != 0), f"a link of user {owner}: {os.listdir(target)} {p.stderr.strip()}")
            os.unlink(link)
            shutil.rmtree(path, ignore_errors=True)
            shutil.rmtree(target)


def check_replaced(tmp):
    """A file of another user that is replaced does not lend its permissions; the own one does."""
    path = os.path.join(tmp, "replaced.svg")
    for owner, want in ((65534, 0o644), (0, 0o666)):
        run("picture", f"{tmp}/h.steal", "-o", path, umask=0o022)
        os.chmod(path, 0o666)
        os.chown(path, owner, owner)
        run("picture", f"{tmp}/h.steal", "-o", path, umask=0o022)
        check(stat.S_IMODE(os.stat(path).st_mode) == want, f"replaced a file of user {owner}: {os.stat(path).st_mode:o}")
        os.unlink(path)


def check_environment(tmp):
    """Directories of another user, which sudo may keep in the environment, are neither used nor read by root."""
    script, packed, user = (os.path.join(tmp, name) for name in ("script", "fibonacci.tar", "user"))
    with open(script, "w", encoding="ascii") as f:
        f.write("key j\n")
    subprocess.run(["tar", "-cf", packed, "-C", tmp, "trace"], check=True)
    for owner in (65534, 0):
        os.makedirs(f"{user}/config/stealscope")
        with open(f"{user}/config/stealscope/config.yaml", "w", encoding="ascii") as f:
            f.write("not: a setting\n")
        for path, _, _ in os.walk(user):
            os.chown(path, owner, owner)
        env = {"XDG_CONFIG_HOME": f"{user}/config", "XDG_CACHE_HOME": f"{user}/cache", "XDG_STATE_HOME": f"{user}/state", "HOME": f"{tmp}/home"}
        p = run("view", f"{tmp}/h.steal", "--script", script, "--size", "80x24", env=env, status=None)
        check(("config.yaml" in p.stderr) == (owner == 0), f"settings of user {owner}: {p.stderr.strip()}")
        if "without libarchive" not in run("--version").stdout:
            run("info", packed, env=env)
            check(("cache" in os.listdir(user)) == (owner == 0), f"directory of user {owner}: {os.listdir(user)}")
        shutil.rmtree(user)


def main():
    if not is_root() or not os.path.exists(PYTHON) or not shutil.which("setpriv"):
        skip("needs root, setpriv and " + PYTHON)
    if is_sanitized() or "cannot record" in run("record", "--check", status=None).stderr:
        skip("this build cannot record, or sanitizers must be preloaded first")
    with scratch() as tmp:
        os.chmod(tmp, 0o755)
        make_machine(tmp)
        check_rounds(tmp, 6)
        check_replaced(tmp)
        check_links(tmp)
        check_directories(tmp)
        check_environment(tmp)


if __name__ == "__main__":
    main()
