"""The native reader and libbabeltrace2 in whole commands on damaged recordings: where the native reader finds no damage, both
give the same history; where it refuses a trace, libbabeltrace2 reads it.
SEEDS: number of damaged recordings; SEED: of the damage of the first one."""
import json
import os
import random
import shutil
import sys

from e2e import DATA, check, content, run, scratch, seeds, simulate

READERS = ("native", "babeltrace", "auto")


def trace_files(folder):
    return sorted(os.path.join(base, f) for base, _, files in os.walk(folder) for f in files
                  if os.path.basename(base) in ("kernel", "index"))


def flip_bit(rng, data, first=0, size=None):
    at = first + rng.randrange(size or len(data) - first)
    data[at] ^= 1 << rng.randrange(8)


def overwrite(rng, data):
    at, n = rng.randrange(len(data)), rng.choice((2, 8, 64, 1000))
    data[at:at + n] = rng.randbytes(len(data[at:at + n]))


def clear(rng, data):
    at, n = rng.randrange(len(data)), rng.choice((4, 64, 4096))
    data[at:at + n] = bytes(len(data[at:at + n]))


def swap_blocks(rng, data):
    a, b = (4096 * rng.randrange(max(1, len(data) // 4096)) for _ in range(2))
    data[a:a + 4096], data[b:b + 4096] = data[b:b + 4096], data[a:a + 4096]


DAMAGE = {
    "bit": flip_bit,
    "head": lambda rng, data: flip_bit(rng, data, 4096 * rng.randrange(max(1, len(data) // 4096)), min(80, len(data) % 4096 or 80)),
    "bytes": overwrite,
    "zeros": clear,
    "blocks": swap_blocks,
    "end": lambda rng, data: data.__delitem__(slice(rng.randrange(len(data)), None)),
}


def damage(rng, folder):
    """Damages one file.  Returns a description."""
    path, kind = rng.choice(trace_files(folder)), rng.choice(("bit", "head", "bytes", "zeros", "blocks", "end", "missing"))
    name = os.path.relpath(path, folder)
    if kind == "missing":
        os.unlink(path)
        return f"{name} is missing"
    with open(path, "rb") as f:
        data = bytearray(f.read())
    if data:
        DAMAGE[kind](rng, data)
    with open(path, "wb") as f:
        f.write(data)
    return f"{kind} of {name}"


class Result:
    """What `index` makes of a recording with one of the readers."""
    def __init__(self, folder, reader):
        out = f"{folder}.{reader}.steal"
        p = run("index", folder, "--reader", reader, "-o", out, status=None)
        self.status, self.stderr, self.content, self.kinds, self.has_damage = p.returncode, p.stderr, None, set(), False
        check(self.status in (0, 2) and os.path.exists(out) == (self.status == 0), f"{reader}: {self.status} {p.stderr.strip()[:300]}")
        if self.status == 0:
            self.content = content(out)
            notes = json.loads(run("info", out, "--format", "json").stdout)["notes"]
            self.has_damage = any(n["kind"] == "damage" for n in notes)
            self.has_warning = any(n["kind"] != "info" for n in notes)
            os.unlink(out)


def compare(folder, what):
    native, library, auto = (Result(folder, reader) for reader in READERS)
    if native.status == 0:
        check(auto.content == native.content, f"{what}: auto gives the native reader's history")
        if native.has_damage:
            check(library.status == 2 or library.has_warning, f"{what}: both report damage")
        else:  # libbabeltrace2 also refuses headers of the metadata that do not matter
            check(library.content == native.content or "metadata cannot be read" in library.stderr, f"{what}: the same history")
    else:
        check("not readable by the native reader" in native.stderr or library.status == 2, f"{what}: {native.stderr.strip()}")
        if library.status == 0:  # auto reads each trace by the reader that supports it: other traces may be damaged, too
            check(auto.content == library.content or (auto.has_damage and library.has_warning),
                  f"{what}: auto gives the history of libbabeltrace2")
    return native.status, library.status, auto.status


def check_packet_times(tmp):
    """A packet that ends before it begins, where libbabeltrace2 reads it: its events are read."""
    folder = os.path.join(tmp, "packet-times")
    shutil.copytree(os.path.join(DATA, "fibonacci"), folder)
    intact = Result(folder, "babeltrace")
    path = os.path.join(folder, "host", "kernel", "ch_1")
    with open(path, "r+b") as f:
        f.seek(37)  # byte of the packet's begin
        byte = f.read(1)[0]
        f.seek(37)
        f.write(bytes([byte ^ 4]))
    damaged = Result(folder, "babeltrace")
    check(damaged.content == intact.content and not damaged.has_damage, "a packet that ends before it begins")


def main():
    with scratch() as tmp:
        check_packet_times(tmp)
        simulate(os.path.join(tmp, "chain"), "chain", "--duration", "200ms", "--seed", "5")
        sources = [os.path.join(DATA, "fibonacci")] + 2 * [os.path.join(tmp, "chain")]
        seen = {}
        for seed in seeds(6, 20):
            rng = random.Random(seed)
            folder = os.path.join(tmp, "damaged")
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(rng.choice(sources), folder)
            what = f"{seed}: " + ", ".join(damage(rng, folder) for _ in range(rng.choice((1, 1, 2))))
            outcome = compare(folder, what)
            seen[outcome] = seen.get(outcome, 0) + 1
        print("exit statuses (native, babeltrace, auto): " + ", ".join(f"{k}: {n}" for k, n in sorted(seen.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
