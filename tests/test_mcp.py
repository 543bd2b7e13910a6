"""`stealscope mcp`: the tools give the same answers as the commands, in pages, and nothing outside of the directory."""
import json
import os
import shutil
import subprocess

from e2e import DATA, PROGRAM, check, run, scratch


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


def words_of(text):
    """The text in one line: explain wraps its lines, and paths have different lengths."""
    return " ".join(text.split())


def tree(folder):
    return sorted(os.path.join(d, f) for d, _, names in os.walk(folder) for f in names)


with scratch() as folder:
    served = f"{folder}/served"
    shutil.copytree(f"{DATA}/fibonacci", f"{served}/fibonacci")
    run("index", f"{DATA}/fibonacci", "-o", f"{served}/saved.steal")
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
    check(server.tool("recordings").split() == ["fibonacci", "saved.steal", "."], "the recordings")

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
    server.tool("explain", error=True, recording="saved.steal", target="--output=x")
    server.tool("summary", error=True, recording="saved.steal", output="x")
    server.tool("summary", error=True, recording="saved.steal", top="3")
    server.tool("summary", error=True, recording="saved.steal", format="csv")
    server.tool("flow", error=True, recording="saved.steal")
    server.tool("flow", error=True, recording="saved.steal", target="Nobody/1")

    # Messages that are none.
    check(server.line("{")["error"]["code"] == -32700, "not JSON")
    check(server.line("[" * 100)["error"]["code"] == -32700, "too deep")
    check(server.line("[]")["error"]["code"] == -32600, "not an object")
    check(server.line('{"jsonrpc":"2.0","id":[1],"method":"ping"}')["error"]["code"] == -32600, "a strange id")
    check(server.line('{"jsonrpc":"2.0","id":"a","method":"shell"}')["error"]["code"] == -32601, "no such method")
    check(server.line('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"rm"}}')["error"]["code"] == -32602,
          "no such tool")
    check(server.line("x" * (1 << 21))["error"]["code"] == -32700, "too long")
    check(server.call("ping")["result"] == {}, "and it still answers")

    server.process.stdin.close()
    check(server.process.wait(timeout=60) == 0, "ends with its input")
    check(tree(served) == before, "nothing was written into the directory")
    check(os.listdir(temporary) == [], "no temporary file is left")
    check(run("mcp", f"{folder}/secret.steal", status=2).stderr.count("\n") == 1, "a file is refused")
