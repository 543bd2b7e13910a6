"""The HTTP client against servers that answer and keep the connection open, or break off."""
import os
import socket
import subprocess
import threading
import time

from e2e import DATA, PROGRAM, check, run, scratch

REFUSAL = b"Code: 60. Table is missing"
ANSWERS = {  # name: (bytes of the answer, what the message contains)
    "a whole answer, connection kept": (b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n" % len(REFUSAL) + REFUSAL, "Code: 60"),
    "an empty answer, connection kept": (b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", "without a reason"),
    "no number as length": (b"HTTP/1.1 500 No\r\nContent-Length: -1\r\n\r\nx", "complete answer"),
    "a length beyond 64 bits": (b"HTTP/1.1 500 No\r\nContent-Length: 99999999999999999999\r\n\r\nx", "complete answer"),
    "endless header": (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000, "complete answer"),
    "not HTTP": (b"SSH-2.0-x\r\n", "complete answer"),
}


def serve(listener, answer):
    """Answers each connection, and keeps all of them open."""
    kept = []
    while True:
        try:
            c, _ = listener.accept()
        except OSError:
            return
        kept.append(c)
        c.settimeout(10)
        try:
            data = b""
            while not data.endswith(b"0\r\n\r\n"):
                part = c.recv(65536)
                if not part:
                    break
                data += part
            c.sendall(answer)
        except OSError:
            pass


with scratch() as tmp:
    history = os.path.join(tmp, "x.steal")
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    for name, (answer, message) in ANSWERS.items():
        listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=serve, args=(listener, answer), daemon=True).start()
        begin = time.monotonic()
        p = subprocess.run([PROGRAM, "export", history, "--to", f"clickhouse://u@127.0.0.1:{listener.getsockname()[1]}/db"],
                           capture_output=True, text=True, timeout=60)
        took = time.monotonic() - begin
        check(p.returncode == 4 and message in p.stderr and p.stderr.count("\n") == 1, f"{name}: {p.returncode} {p.stderr.strip()}")
        check(took < 20, f"{name}: the program ends after {took:.1f} s")
        listener.close()
