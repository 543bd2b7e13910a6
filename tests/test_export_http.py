"""The HTTP client against servers that answer and keep the connection open, or break off, redirect, or refuse early; and with
TLS."""
import csv
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time

from e2e import DATA, PROGRAM, check, run, scratch, skip, waited

REFUSAL = b"Code: 60. Table is missing"
ANSWERS = {  # name: (bytes of the answer, text in the message)
    "a whole answer, connection kept": (b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n" % len(REFUSAL) + REFUSAL, "Code: 60"),
    "an empty answer, connection kept": (b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", "without a reason"),
    "no number as length": (b"HTTP/1.1 500 No\r\nContent-Length: -1\r\n\r\nx", "complete answer"),
    "a length beyond 64 bits": (b"HTTP/1.1 500 No\r\nContent-Length: 99999999999999999999\r\n\r\nx", "complete answer"),
    "a length beyond the limit": (b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\nx", "complete answer"),
    "endless header": (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000, "complete answer"),
    "not HTTP": (b"SSH-2.0-x\r\n", "complete answer"),
    "control characters": (b"HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\n\x1b[2Jevil\r\n", "\\e[2Jevil"),
    "a chunk that is no number": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "complete answer"),
}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def serve(listener, answer, seen=None):
    """Answers each connection with bytes, or with the result of a function of the request, and keeps all of them open."""
    kept = []
    while True:
        try:
            c, _ = listener.accept()
        except ssl.SSLError:
            continue
        except OSError:
            return
        kept.append(c)
        c.settimeout(300)
        try:
            data = b""
            while not data.endswith(b"0\r\n\r\n"):
                part = c.recv(65536)
                if not part:
                    break
                data += part
            if seen is not None:
                seen.append(data)
            c.sendall(answer if isinstance(answer, bytes) else answer(data))
        except OSError:
            pass


def refuse_inserts(listener):
    """Accepts all statements, but refuses an INSERT after its head, and closes that connection."""
    while True:
        try:
            c, _ = listener.accept()
        except OSError:
            return
        c.settimeout(300)
        data = c.recv(65536)
        if b"INSERT" in data.split(b"\r\n")[0]:
            c.sendall(b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n" % len(REFUSAL) + REFUSAL)
        else:
            while not data.endswith(b"0\r\n\r\n"):
                data += c.recv(65536)
            c.sendall(OK)
        c.close()


def start_server(target, *args):
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=target, args=(listener, *args), daemon=True).start()
    return listener, listener.getsockname()[1]


def export(history, url, **env):
    p = subprocess.Popen([PROGRAM, "export", history, "--to", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env={**os.environ, **env})
    begin = time.monotonic() - waited(p.pid)
    os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)  # its output fits into the pipes
    took = time.monotonic() - waited(p.pid) - begin      # without what other programs have taken
    check(took < 20, f"the program ends after {took:.1f} s")
    out, err = p.communicate()
    return subprocess.CompletedProcess(p.args, p.returncode, out, err)


def check_whole(history, tmp):
    """A server that accepts everything gets each row: here the names of all threads, as in the csv files."""
    run("export", history, "--to", f"csv:{tmp}/csv")
    folder = os.path.join(tmp, "csv", "thread")
    with open(os.path.join(folder, os.listdir(folder)[0]), newline="", encoding="utf-8") as f:
        names = {row["name"] for row in csv.DictReader(f)}
    seen = []
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n0\t\r\n2\r\n0\n\r\n0\r\n\r\n"
    listener, port = start_server(serve, answer, seen)
    p = export(history, f"clickhouse://u@127.0.0.1:{port}/db")
    check(p.returncode == 0, f"exported: {p.stderr.strip()}")
    body = next(r for r in seen if re.match(rb"POST \S*query=INSERT\S*_thread%20FORMAT", r)).split(b"\r\n\r\n", 1)[1]
    rows = b""
    while not body.startswith(b"0\r\n"):
        size, body = body.split(b"\r\n", 1)
        rows, body = rows + body[:int(size, 16)], body[int(size, 16) + 2:]
    missing = [n for n in names if bytes([len(n.encode())]) + n.encode() not in rows]
    check(len(names) > 20 and not missing, f"all {len(names)} names of threads arrive: {missing}")
    listener.close()


def check_redirect(history):
    """A redirect is a refusal: no request goes to the other server."""
    seen = []
    other, port = start_server(serve, OK, seen)
    listener, first = start_server(serve, b"HTTP/1.1 307 No\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n" % port)
    p = export(history, f"clickhouse://u:secret@127.0.0.1:{first}/db")
    check(p.returncode == 4 and "307" in p.stderr and not seen, f"not redirected: {p.stderr.strip()}")
    other.close()
    listener.close()


def check_tls(history, tmp):
    """The server's certificate must be trusted; then the request arrives."""
    if not shutil.which("openssl"):
        skip("openssl is not installed; all checks without TLS passed")
    key, cert = os.path.join(tmp, "key.pem"), os.path.join(tmp, "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    seen = []
    listener = context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)
    threading.Thread(target=serve, args=(listener, ANSWERS["a whole answer, connection kept"][0], seen), daemon=True).start()
    url = f"clickhouse+https://me:s3cret@127.0.0.1:{listener.getsockname()[1]}/db"
    p = export(history, url)
    check(p.returncode == 4 and "TLS" in p.stderr and "SSL_CERT_FILE" in p.stderr and not seen, f"refused: {p.stderr.strip()}")
    p = export(history, url, SSL_CERT_FILE=cert)
    check(p.returncode == 4 and "Code: 60" in p.stderr, f"with the certificate: {p.stderr.strip()}")
    check(b"X-ClickHouse-Key: s3cret\r\n" in seen[0] and b"chunked" in seen[0], "the server gets the request")
    listener.close()


def main():
    with scratch() as tmp:
        history = os.path.join(tmp, "x.steal")
        run("index", os.path.join(DATA, "fibonacci"), "-o", history)
        if "not in this build" in next(x for x in run("export", "--targets").stdout.split("\n") if x.startswith("clickhouse:")):
            p = run("export", history, "--to", "clickhouse://localhost", status=1)
            check("libcurl" in p.stderr, f"refused: {p.stderr.strip()}")
            skip("built without libcurl")
        for name, (answer, message) in ANSWERS.items():
            listener, port = start_server(serve, answer)
            p = export(history, f"clickhouse://u@127.0.0.1:{port}/db")
            check(p.returncode == 4 and message in p.stderr and p.stderr.count("\n") == 1,
                  f"{name}: {p.returncode} {p.stderr.strip()}")
            listener.close()
        listener, port = start_server(refuse_inserts)
        p = export(history, f"clickhouse://u@127.0.0.1:{port}/db")
        check(p.returncode == 4 and "Code: 60" in p.stderr, f"an early refusal: {p.stderr.strip()}")
        listener.close()
        check_whole(history, tmp)
        check_redirect(history)
        for url, message in (("clickhouse://127.0.0.1:1/x", "127.0.0.1:1"), ("clickhouse://a b/x", "malformed"),
                             ("clickhouse://h%2fx/x", "malformed"), ("clickhouse://u:secret@[::1/x", "malformed"),
                             ("clickhouse://me:secret%0d%0aX: y@127.0.0.1/x", "malformed")):
            p = export(history, url)
            check(p.returncode in (1, 4) and message in p.stderr and "secret" not in p.stderr, f"{url}: {p.stderr.strip()}")
        check_tls(history, tmp)


if __name__ == "__main__":
    main()
