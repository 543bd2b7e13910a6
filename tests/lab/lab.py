"""The lab: a KVM host and its guests under QEMU's emulation, for tests of recording with real kernels.

The directory LAB contains build/ (a kernel, the host's initrd, and its disk, in which /lab/l2.initrd is the root file system
of the guests) and scripts/20-start-l1.sh, which starts the host with a shell on the socket run/l1cmd.sock.  Programs that
the host and its guests lack (this stealscope, ssh, socat) are copied from this machine through the host's second disk."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time

CPU = "max,-la57,-pku,-avx,-avx2,-fma,-f16c,-xsave"  # nested guests crash with these features
HOST_TOOLS = ["/usr/bin/ssh"]
GUEST_TOOLS = ["/usr/bin/socat", "/usr/sbin/dropbear"]
DEBIAN = ("modprobe vhost_vsock", "vmstart Debian 1 $(date +%FT%T) -device vhost-vsock-pci,guest-cid=3; gup Debian",
          "g Debian 'modprobe vmw_vsock_virtio_transport; socat VSOCK-LISTEN:9000,fork EXEC:/bin/sh </dev/null >/dev/null 2>&1 &'")
UBUNTU = ("bridge tapU; ip addr add 10.0.0.254/24 dev br0", "vmstart Ubuntu 2 $(date +%FT%T) $(netopt tapU 2); gup Ubuntu",
          "g Ubuntu 'netup 10.0.0.2; /usr/sbin/dropbear -R'", "ssh -o ConnectTimeout=60 root@10.0.0.2 true")


class Hung(Exception):
    """No answer in time.  (Emulated CPUs hang sometimes.)"""


def missing(lab):
    """Returns the missing files."""
    files = [os.path.join(lab, "build", f) for f in ("vmlinuz", "l1.initrd", "l1.ext4")] + HOST_TOOLS + GUEST_TOOLS
    return [f for f in files if not os.path.exists(f)]


def copy_program(path, root, merged=False):
    """Copies a program and its libraries; merged: /lib is a link to /usr/lib in the root."""
    out = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    for file in {path, *re.findall(r"(/\S+)", out)}:
        to = root + ("/usr" + file if merged and file.startswith("/lib") else file)
        if not os.path.exists(to):
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(file, to)


def write_file(root, name, text, mode=0o644):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def make_disk(lab, program):
    """Writes the second disk: a tar archive that the host unpacks over its root."""
    with tempfile.TemporaryDirectory(dir=os.path.join(lab, "run")) as work:
        host, guest = os.path.join(work, "host"), os.path.join(work, "guest")
        for tool in HOST_TOOLS:
            copy_program(tool, host, True)
        copy_program(program, host, True)
        shutil.move(host + program, os.path.join(host, "usr/bin/stealscope"))
        subprocess.run(["strip", os.path.join(host, "usr/bin/stealscope")], check=True)
        for tool in GUEST_TOOLS:
            copy_program(tool, guest)
        key = os.path.join(work, "key")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        with open(key, encoding="utf-8") as f:
            write_file(host, "root/.ssh/id_ed25519", f.read(), 0o600)
        with open(key + ".pub", encoding="utf-8") as f:
            write_file(guest, "root/.ssh/authorized_keys", f.read(), 0o600)
        write_file(host, "root/.ssh/config", "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n")
        os.makedirs(os.path.join(guest, "etc/dropbear"))
        for folder, _, _ in os.walk(guest):
            os.chmod(folder, 0o755)
        os.chmod(os.path.join(guest, "root/.ssh"), 0o700)
        names = subprocess.run(["find", "."], cwd=guest, capture_output=True, check=True).stdout
        os.makedirs(os.path.join(host, "lab"))
        with open(os.path.join(host, "lab/l2.more"), "wb") as out:
            subprocess.run(["cpio", "-o", "-H", "newc", "-R", "0:0", "--quiet"], cwd=guest, input=names, stdout=out,
                           check=True)
        with tarfile.open(os.path.join(work, "tar"), "w") as tar:
            tar.add(host, ".", filter=lambda t: t.replace(uid=0, gid=0, uname="root", gname="root", deep=False))
        disk = os.path.join(lab, "run/in.img")
        with open(os.path.join(work, "tar"), "rb") as tar, open(disk, "r+b") as to:
            shutil.copyfileobj(tar, to, 1 << 20)


class Lab:
    def __init__(self, lab, program):
        self.lab, self.qemu, self.lines = lab, None, 0
        make_disk(lab, program)

    def start_script(self, counted):
        """Returns the script that starts the host.  counted: with one CPU whose clock counts executed instructions, 1 ns each."""
        script = os.path.join(self.lab, "scripts/20-start-l1.sh")
        if not counted:
            return script
        with open(script, encoding="utf-8") as f:
            text = f.read()
        write_file(self.lab, "run/counted.sh", text.replace("thread=multi", "thread=single"), 0o755)
        return os.path.join(self.lab, "run/counted.sh")

    def boot(self, counted=False):
        """Starts and prepares the host, in up to three attempts."""
        script, more = self.start_script(counted), {"CPU": CPU}
        if counted:
            more = {"CPU": CPU + " -icount shift=0,sleep=off,align=off", "SMP": "1"}
        for _ in range(3):
            self.stop()
            with open(os.path.join(self.lab, "run/l1.log"), "w", encoding="utf-8") as log:
                self.qemu = subprocess.Popen(
                    [script], env={**os.environ, **more}, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                    start_new_session=True)
            end = time.time() + 120
            while time.time() < end:
                time.sleep(1)
                try:
                    self.sh("true", 5)
                    self.sh("push; cat /lab/l2.initrd /lab/l2.more >/dev/shm/l2.initrd; L2I=/dev/shm/l2.initrd UPT=300", 60)
                    return
                except (Hung, OSError):
                    pass
        raise Hung("the host does not boot")

    def stop(self):
        if self.qemu:
            os.kill(self.qemu.pid, signal.SIGKILL)
            self.qemu.wait()
        self.qemu = None

    def sh(self, line, timeout=60):
        """Sends a line to the host's shell (always the same bash).  Returns its status and output, without output of earlier
        lines that timed out."""
        self.lines += 1
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(os.path.join(self.lab, "run/l1cmd.sock"))
            s.settimeout(1)
            s.sendall(f"{line}; echo @@{self.lines} $?".replace("\n", " ").encode() + b"\n")
            end, text = time.time() + timeout, b""
            while time.time() < end:
                try:
                    text += s.recv(65536)
                except socket.timeout:
                    continue
                done = re.search(rb"(?m)^@@%d (\d+)\r?\n@@RC 0\r?\n" % self.lines, text)
                if done:
                    output = re.split(r"(?m)^@@RC \d+\r?\n", text[:done.start()].decode("utf-8", "replace"))[-1]
                    return int(done[1]), output.replace("\r", "")
        raise Hung(f"no answer in {timeout} s: {line}\n{text.decode('utf-8', 'replace')}")

    def where(self):
        """Returns several samples of the program counters of the host's CPUs, from QEMU's monitor: a CPU that hangs stands still
        or loops."""
        samples = []
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(os.path.join(self.lab, "run/l1mon.sock"))
            s.settimeout(0.5)
            for _ in range(4):
                s.sendall(b"info registers -a\n")
                text = b""
                try:
                    while True:
                        text += s.recv(65536)
                except socket.timeout:
                    samples.append(" ".join(re.findall(r"RIP=(\S+)", text.decode("utf-8", "replace"))) or "no answer")
        return "program counters of the host's CPUs: " + ", ".join(samples)

    def guests(self, lines=DEBIAN + UBUNTU):
        """Starts Debian (one CPU; a shell on its vsock) and Ubuntu (two CPUs; ssh)."""
        for line in lines:
            status, text = self.sh(line, 320)
            if status or "TIMEOUT" in text:
                raise Hung(f"{line}: {text}")
