"""A terminal program on a pty that tmux interprets."""
import os
import re
import subprocess
import time

screens = []  # all that were opened


class Screen:
    """A tmux server with one window, which runs a command."""

    def __init__(self, directory, w, h, command, env=""):
        self.socket = os.path.join(directory, f"tmux{time.monotonic_ns()}")
        screens.append(self)
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(w), "-y", str(h), "-c", directory,
                  f"{env} {command}; echo ended $?; exec cat")

    def tmux(self, *args):
        return subprocess.run(["tmux", "-u", "-S", self.socket, *args], capture_output=True, text=True, timeout=300).stdout

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def text(self):
        return self.tmux("capture-pane", "-p")

    def wait(self, pattern, seconds=120):
        """Returns the screen when it matches; None if it does not in this time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = self.text()
            if re.search(pattern, text, re.M):
                return text
            time.sleep(0.1)
        print(text)
        return None

    def close(self):
        self.tmux("kill-server")
