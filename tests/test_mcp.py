"""`stealscope mcp`: the tools give the same answers as the commands, in pages, and nothing outside of the directory."""
import ctypes
import json
import os
import shutil
import socket
import subprocess

from e2e import BUILD, DATA, PROGRAM, check, run, scratch


class Server:
    """A server on a directory; call() sends a request and returns the reply."""

    def __init__(self, directory):
        self.process = subprocess.Popen([PROGRAM, "mcp", directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.id = 0

    def line(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def call(self, method, **params):
        self.id += 1
        reply = self.line(json.dumps({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}))
        check(reply["jsonrpc"] == "2.0" and reply["id"] == self.id, f"{method} has its reply")
        return reply

    def tool(self, name, error=False, **arguments):
        result = self.call("tools/call", name=name, arguments=arguments)["result"]
        text = result["content"][0]["text"]
        check(result["isError"] == error, f"{name}: {'refused' if error else 'answered'}")
        check(len(text.encode()) <= 40100, f"{name}: {len(text.encode())} bytes")
        return text


def names(server):
    """The names of the recordings that the server lists."""
    return {line.split()[0] for line in server.tool("recordings").splitlines()[1:]}


def words_of(text):
    """The text in one line: explain wraps its lines, and paths have different lengths."""
    return " ".join(text.split())


def tree(folder):
    return sorted(os.path.join(d, f) for d, _, names in os.walk(folder) for f in names)


def check_recordings_that_lead_out(server, served, folder):
    """What a recording refers to is not read if it is outside of the served directory, or on the network."""
    daemon = socket.create_server(("127.0.0.1", 0))
    outside = f"{folder}/outside"
    shutil.copytree(f"{DATA}/fibonacci", outside)
    bad = f"{served}/bad"
    for session, links in ((f"host: {{dir: 'net://127.0.0.1:{daemon.getsockname()[1]}/host/h/s'}}\n", {}),
                           ("host: {dir: ../../outside/host}\n", {}), (f"host: {{dir: {outside}/host}}\n", {}),
                           ("", {"host": f"{outside}/host"}), ("", {"host": "../../outside/host"}),
                           ("", {name: f"{outside}/{name}" for name in os.listdir(outside)})):
        os.mkdir(bad)
        if session:
            with open(f"{bad}/session.yaml", "w", encoding="utf-8") as f:
                f.write(session)
        for name, target in links.items():
            os.symlink(target, f"{bad}/{name}")
        for tool in ("summary", "events"):
            text = server.tool(tool, error=True, recording="bad", **({"at": "50%"} if tool == "events" else {}))
            check("fibonacci" not in text.replace("/fibonacci/", ""), f"{session!r} {sorted(links)}: {text}")
        shutil.rmtree(bad)
    shutil.copytree(outside, f"{served}/inside")
    os.symlink(outside, f"{served}/saved.d")
    os.symlink("inside", f"{served}/alias")
    check("saved.d" not in names(server) and "alias" in names(server), "only links that stay inside are listed")
    check(server.tool("summary", recording="alias"), "such a link is a recording")
    # A history contains the places of its traces.
    run("index", outside, "-o", f"{served}/of_outside.steal")
    server.tool("summary", recording="of_outside.steal")
    server.tool("events", error=has_landlock(), recording="of_outside.steal", at="50%")
    for name in ("saved.d", "alias", "of_outside.steal"):
        os.unlink(f"{served}/{name}")
    shutil.rmtree(f"{served}/inside")
    daemon.settimeout(0)
    try:
        daemon.accept()
        check(False, "the server connects to the host of a recording's choice")
    except BlockingIOError:
        pass


def has_landlock():
    """True if the kernel and the build can limit what the server's commands read: landlock_create_ruleset(0, 0, VERSION)."""
    with open(f"{BUILD}/Makefile", encoding="utf-8") as f:
        built = "-DHAVE_LANDLOCK=1" in f.read()
    return built and ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) > 0


def check_replaced(server, served, folder):
    """Answers are about the recording that is there now."""
    def first(name):
        return server.tool("summary", recording=name).split("\n")[0]
    run("index", f"{DATA}/beacon", "-o", f"{folder}/other.steal")
    shutil.copy(f"{folder}/secret.steal", f"{served}/x.steal")
    old, new = first("x.steal"), run("summary", f"{folder}/other.steal").stdout.split("\n")[0]
    check(old != new, "two recordings differ")
    shutil.copy(f"{folder}/other.steal", f"{served}/y.steal")
    os.rename(f"{served}/y.steal", f"{served}/x.steal")
    check(first("x.steal") == new, "a history that was replaced")
    shutil.copytree(f"{DATA}/fibonacci", f"{served}/rec")
    check(first("rec") == old, "a directory")
    shutil.rmtree(f"{served}/rec")
    shutil.copytree(f"{DATA}/beacon", f"{served}/rec")
    check(first("rec") == new, "a directory that was replaced")
    os.unlink(f"{served}/rec/trace-Debian.dat")
    check(server.tool("summary", recording="rec") != run("summary", f"{folder}/other.steal").stdout, "and one of which a file was removed")
    os.mkfifo(f"{served}/f.steal")
    server.tool("summary", error=True, recording="f.steal")
    shutil.rmtree(f"{served}/rec")
    for name in ("x.steal", "f.steal"):
        os.unlink(f"{served}/{name}")


with scratch() as folder:
    served = f"{folder}/served"
    shutil.copytree(f"{DATA}/fibonacci", f"{served}/fibonacci")
    run("index", f"{served}/fibonacci", "-o", f"{served}/saved.steal")
    run("index", f"{DATA}/fibonacci", "-o", f"{folder}/secret.steal")
    history = f"{served}/saved.steal"
    before = tree(served)
    temporary = f"{folder}/tmp"
    os.mkdir(temporary)
    os.environ["TMPDIR"] = temporary
    server = Server(served)

    result = server.call("initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={})["result"]
    check(result["protocolVersion"] == "2025-03-26" and result["serverInfo"]["name"] == "stealscope", "initialize")
    server.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    check(server.call("ping")["result"] == {}, "a notification has no reply")

    tools = {t["name"]: t for t in server.call("tools/list")["result"]["tools"]}
    check(set(tools) == {"recordings", "summary", "explain", "gaps", "flow", "path", "requests", "diff", "events", "picture",
                         "continue"}, "eleven tools")
    check(tools["flow"]["inputSchema"]["required"] == ["recording", "target"], "flow needs a target")
    shutil.copy(history, f"{served}/copy")
    check(server.tool("recordings") == run("view", served).stdout and names(server) == {"fibonacci", "saved.steal", "copy"},
          "the recordings: the lines of the list, histories by content")
    os.unlink(f"{served}/copy")

    # The answers are those of the commands, from a history and from traces.
    for name, arguments, words in (
            ("summary", {}, ["summary", history]),
            ("summary", {"format": "json", "top": 3}, ["summary", history, "--format", "json", "--top", "3"]),
            ("explain", {"target": "Debian/CPU0"}, ["explain", history, "Debian/CPU0"]),
            ("gaps", {"target": "Debian", "min": "1ms", "format": "json"},
             ["gaps", history, "Debian", "--min", "1ms", "--format", "json"]),
            ("flow", {"target": "Debian/CPU0", "from": "+1s", "to": "+2s"},
             ["flow", history, "Debian/CPU0", "--from=+1s", "--to=+2s"]),
            ("path", {"target": "Debian/CPU0"}, ["path", history, "Debian/CPU0"]),
            ("events", {"at": "50%", "around": "500us"}, ["events", history, "--at", "50%", "--around", "500us"])):
        answer = run(*words).stdout
        for recording in ("saved.steal", "fibonacci"):
            text = server.tool(name, recording=recording, **arguments)
            expected = words_of(answer.replace(history.replace("/", r"\/"), recording).replace(history, recording))
            check(words_of(text).startswith(expected) and "proc/self" not in text, f"{name} of {recording}: as the command")
    text = server.tool("diff", before="saved.steal", after="fibonacci")
    check("same" in text.lower() or "no " in text.lower(), "diff of a recording and itself: no change")
    check("vCPU0" in server.tool("picture", recording="saved.steal", target="Debian/CPU0", width=100) or
          "CPU0" in server.tool("picture", recording="saved.steal", target="Debian/CPU0"), "picture")

    # Pages: together they are the whole answer.
    whole = run("gaps", history, "--top", "0", "--format", "json").stdout.replace(history.replace("/", r"\/"), "saved.steal")
    part = server.tool("gaps", recording="saved.steal", top=0, format="json")
    pages = []
    while part.endswith('"]\n') and "continue with handle" in part.splitlines()[-1]:
        body, _, last = part[:-1].rpartition("\n")
        pages.append(body + "\n")
        part = server.tool("continue", handle=last.split('"')[1])
    pages.append(part)
    check(len(pages) >= 2 and "".join(pages).startswith(whole), f"{len(pages)} pages are the answer of the command")
    server.tool("continue", error=True, handle="99:1")
    server.tool("continue", error=True, handle="1:-1")

    # Nothing outside of the directory, no options by the way of arguments.
    for recording in ("../secret.steal", "/etc", "..", "fibonacci/../../secret.steal", "missing", "-o"):
        check("no such recording" in server.tool("summary", error=True, recording=recording), f"{recording} is refused")
    os.symlink(f"{folder}/secret.steal", f"{served}/link.steal")
    check("no such recording" in server.tool("summary", error=True, recording="link.steal"), "a link out of the directory")
    os.unlink(f"{served}/link.steal")
    check_recordings_that_lead_out(server, served, folder)
    check_replaced(server, served, folder)
    server.tool("explain", error=True, recording="saved.steal", target="--output=x")
    server.tool("summary", error=True, recording="saved.steal", output="x")
    server.tool("summary", error=True, recording="saved.steal", top="3")
    server.tool("summary", error=True, recording="saved.steal", format="csv")
    server.tool("flow", error=True, recording="saved.steal")
    server.tool("flow", error=True, recording="saved.steal", target="Nobody/1")

    # Messages that are none.
    check(server.line("{")["error"]["code"] == -32700, "not JSON")
    check(server.line("[" * 100)["error"]["code"] == -32700, "too deep")
    check(server.line("[]")["error"]["code"] == -32600, "an empty batch")
    ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    replies = server.line(json.dumps([ping, {"jsonrpc": "2.0", "method": "x"}, {**ping, "id": "b"}, [], 5]))
    check([(r["id"], "result" in r) for r in replies] == [(7, True), ("b", True), (None, False), (None, False)], f"a batch: {replies}")
    for text in (json.dumps(ping) + " x", json.dumps(ping) * 2, json.dumps(ping).replace('"', "'"),
                 json.dumps(ping) + "\0", json.dumps(ping)[:-1] + ",}"):
        check(server.line(text)["error"]["code"] == -32700, f"{text!r} is not one JSON value")
    server.process.stdin.buffer.write(b'{"jsonrpc":"2.0","id":"\xff\xfe","method":"ping"}\n')
    check(server.line("")["error"]["code"] == -32700, "an id that is not UTF-8")
    for id in (99999999999999999999, -10**30, 2**53 + 1, 1.5, None):
        check(server.line(json.dumps({**ping, "id": id}))["error"]["code"] == -32600, f"{id}: the reply could not repeat it")
    check(server.line(json.dumps({**ping, "id": -2**53}) + " \t\r")["id"] == -2**53, "a large id, and blanks at the end")
    server.process.stdin.write('{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":1,"error":{"code":1}}\n[]\n')
    check(server.line("")["error"]["code"] == -32600, "responses get no reply")
    check(server.line('{"jsonrpc":"2.0","id":[1],"method":"ping"}')["error"]["code"] == -32600, "a strange id")
    check(server.line('{"jsonrpc":"2.0","id":"a","method":"shell"}')["error"]["code"] == -32601, "no such method")
    check(server.line('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"rm"}}')["error"]["code"] == -32602,
          "no such tool")
    check(server.line("x" * (1 << 21))["error"]["code"] == -32700, "too long")
    check(server.call("ping")["result"] == {}, "and it still answers")

    server.process.stdin.close()
    check(server.process.wait(timeout=300) == 0, "ends with its input")
    check(tree(served) == before, "nothing was written into the directory")
    check(os.listdir(temporary) == [], "no temporary file is left")
    server = Server(f"{DATA}/fibonacci")
    check(names(server) == {"."}, "a recording is its own list")
    server.process.stdin.close()
    check(server.process.wait(timeout=300) == 0, "ends with its input")
    check(run("mcp", f"{folder}/secret.steal", status=2).stderr.count("\n") == 1, "a file is refused")
