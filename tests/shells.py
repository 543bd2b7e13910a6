"""Real shells on a pty, with a key that inserts all completions."""
import os
import pty
import select
import shlex
import subprocess
import time

from e2e import BUILD, SOURCE, check

SCRIPTS = os.path.join(SOURCE, "src", "cli", "completion")
ENV = {**os.environ, "PATH": BUILD + ":" + os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C.UTF-8"}

# Ctrl-O inserts all completions and writes the command line into $OUT.
BASH = """
PS1='> '
bind 'set bell-style none'
source '%s/stealscope.bash'
save_line() { printf '%%s\\n' "$READLINE_LINE" >"$OUT.new"; mv "$OUT.new" "$OUT"; READLINE_LINE=; }
bind '"\\C-x\\C-a": insert-completions'
bind -x '"\\C-x\\C-b": save_line'
bind '"\\C-o": "\\C-x\\C-a\\C-x\\C-b"'
"""
ZSH = """
PS1='> '
fpath=('%s' $fpath)
autoload -U compinit
compinit -u -D
_everything() { _main_complete; compstate[insert]=all; compstate[list]= }
zle -C everything complete-word _everything
save_line() { zle everything; print -r -- $BUFFER >$OUT.new; mv $OUT.new $OUT; BUFFER= }
zle -N save_line
bindkey '^O' save_line
"""


class PtyShell:
    """An interactive shell on a pty."""
    def __init__(self, name, folder):
        self.out = os.path.join(folder, name + ".line")
        text, file, argv = {"bash": (BASH, "bashrc", ["bash", "--rcfile", os.path.join(folder, "bashrc"), "-i"]),
                            "zsh": (ZSH, ".zshrc", ["zsh", "-d", "-i"])}[name]
        with open(os.path.join(folder, file), "w") as f:
            f.write(text % SCRIPTS)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(name, argv, {**ENV, "OUT": self.out, "ZDOTDIR": folder, "HOME": folder})
        self.output = b""
        self.wait(lambda: self.output.endswith(b"> ") or b"> \x1b" in self.output, "a prompt")

    def wait(self, condition, description):
        end = time.monotonic() + 300
        while not condition():
            if time.monotonic() > end:
                check(False, f"{description}: {self.output[-300:]}")
            if select.select([self.fd], [], [], 0.01)[0]:
                self.output += os.read(self.fd, 65536)

    def complete(self, *words):
        line = "stealscope " + " ".join(words)
        os.write(self.fd, line.encode() + b"\x0f")
        self.wait(lambda: os.path.exists(self.out), f"completes {line}")
        with open(self.out) as f:
            got = shlex.split(f.read())[len(words):]
        os.unlink(self.out)
        return set(got) if got != [words[-1]] else set()  # without completions the line is as typed

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


class Fish:
    """fish, which prints completions without a terminal."""
    def __init__(self, _, folder):
        self.folder = folder

    def complete(self, *words):
        program = f"source {SCRIPTS}/stealscope.fish; complete -C \"stealscope $argv\""
        p = subprocess.run(["fish", "--no-config", "-c", program, "--", *words], capture_output=True, text=True, timeout=300,
                           cwd=self.folder, env={**ENV, "HOME": self.folder})
        if p.returncode or p.stderr:
            check(False, f"fish completes {words}: {p.stderr}")
        return {line.split("\t")[0] for line in p.stdout.splitlines()}

    def close(self):
        pass


SHELLS = {"bash": PtyShell, "zsh": PtyShell, "fish": Fish}
