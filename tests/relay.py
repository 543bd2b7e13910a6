"""A relay daemon for tests: serves CTF recordings with LTTng's live protocol (2.4 and later: big endian, one request, one
reply), for the requests of libbabeltrace2.

A recording grows with `released` (packets of each stream that have "arrived"), and ends with `ended`.  A fault
replaces a reply: see Relay.fault."""
import os
import re
import shutil
import socket
import struct
import threading
import time

from e2e import check, until

CONNECT, LIST, ATTACH, NEXT_INDEX, GET_PACKET, GET_METADATA, NEW_STREAMS, CREATE, DETACH = range(1, 10)
PATH, NAME, HOST = 4096, 255, 64
METADATA_MAGIC, PACKET_MAGIC = 0x75D11D57, 0xC1FC1FC1


def text(value, size):
    return value.encode().ljust(size, b"\0")


def in_packet(metadata):
    """Puts metadata into a packet (CTF 1.8, section 7.1), as LTTng sends it; recordings may contain the bare text."""
    if struct.unpack_from("<I", metadata)[0] == METADATA_MAGIC:
        return metadata
    bits = 8 * (37 + len(metadata))
    return struct.pack("<I16sIIIBBBBB", METADATA_MAGIC, bytes(16), 0, bits, bits, 0, 0, 0, 1, 8) + metadata


def edited(folder, to, *changes):
    """Copies a CTF trace and edits its metadata, which becomes bare text if it was in packets."""
    shutil.copytree(folder, to)
    path = os.path.join(to, "metadata")
    with open(path, "rb") as f:
        data, text, at = f.read(), b"", 0
    while data[at:at + 4] == struct.pack("<I", METADATA_MAGIC):
        used, size = struct.unpack_from("<II", data, at + 24)
        text += data[at + 37:at + used // 8]
        at += size // 8
    text = text or data
    for pattern, new in changes:
        text, n = re.subn(pattern.encode(), new.encode(), text, count=1)
        check(n == 1, f"the metadata contains {pattern}")
    with open(path, "wb") as f:
        f.write(text)
    return to


class Stream:
    """A data stream and its packets, found by their headers and contexts in LTTng's layout."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.name = os.path.basename(path)
        self.packets, self.sent, self.awaited, at = [], 0, 0, 0
        while at < len(self.data):
            magic, _, stream_class = struct.unpack_from("<I16sI", self.data, at)
            begin, end, content, size, _, lost = struct.unpack_from("<6Q", self.data, at + 32)
            assert magic == PACKET_MAGIC and size % 8 == 0
            self.packets.append((at, size, content, begin, end, lost, stream_class))
            at += size // 8


class Recording:
    """The recording of a session: CTF traces in these directories, one per tracing domain."""

    def __init__(self, host, name, *folders):
        self.host, self.name = host, name
        self.released, self.ended, self.viewers, self.timer = 1 << 30, True, 0, 100000
        self.metadata, self.streams = [], []
        for folder in folders:
            with open(os.path.join(folder, "metadata"), "rb") as f:
                self.metadata.append(in_packet(f.read()))
            self.streams.append([Stream(os.path.join(folder, n)) for n in sorted(os.listdir(folder))
                                 if n not in ("metadata", "index")])

    def each(self):
        return (s for streams in self.streams for s in streams)

    def rewind(self):
        """Restarts all streams for the next viewer, after the last one has gone."""
        until(lambda: not self.viewers, f"no viewer of {self.name}")
        for s in self.each():
            s.sent = s.awaited = 0

    def is_read(self):
        """Returns true if the viewer decoded all available data: then it has polled each ended stream, or keeps polling the
        stream that it needs next."""
        awaited = [s.awaited for s in self.each()]
        return all(awaited) if self.ended else sum(awaited) > 5


class Viewer:
    """A connection.  Ids: of a metadata stream 1000 * trace; of a data stream 1000 * trace + 1 + number."""

    def __init__(self, relay, connection):
        self.relay, self.connection, self.recording = relay, connection, None
        self.sent_metadata = set()
        self.answers = {CONNECT: self.connect, LIST: self.list, ATTACH: self.attach, NEXT_INDEX: self.next_index,
                        GET_PACKET: self.packet, GET_METADATA: self.get_metadata, NEW_STREAMS: self.new_streams,
                        CREATE: lambda data: struct.pack(">I", 1), DETACH: lambda data: struct.pack(">I", 1)}

    def read(self, size):
        data = b""
        while len(data) < size:
            more = self.connection.recv(size - len(data))
            if not more:
                raise ConnectionError
            data += more
        return data

    def serve(self):
        try:
            while True:
                size, command, _ = struct.unpack(">QII", self.read(16))
                data = self.read(size)
                self.relay.asked.append(command)
                answer = self.relay.fault(command, len(self.relay.asked), lambda: self.answers[command](data))
                if answer is None:
                    break
                self.connection.sendall(answer)
        except OSError:
            pass
        finally:
            if self.recording:
                self.recording.viewers -= 1
            self.connection.close()

    def connect(self, _):
        return struct.pack(">QIII", 1, 2, 4, 1)

    def list(self, _):
        rows = [struct.pack(">QIII", i, r.timer, r.viewers, sum(len(s) + 1 for s in r.streams)) + text(r.host, HOST) +
                text(r.name, NAME) for i, r in enumerate(self.relay.recordings)]
        return struct.pack(">I", len(rows)) + b"".join(rows)

    def attach(self, data):
        number = struct.unpack_from(">Q", data)[0]
        if number >= len(self.relay.recordings):
            return struct.pack(">II", 3, 0)
        if self.relay.recordings[number].viewers or not self.relay.recordings[number].timer:
            return struct.pack(">II", 2 if self.relay.recordings[number].timer else 4, 0)
        r = self.recording = self.relay.recordings[number]
        r.viewers += 1
        rows = []
        for t, streams in enumerate(r.streams):
            names = list(enumerate(["metadata"] + [s.name for s in streams]))
            rows += [struct.pack(">QQI", 1000 * t + i, t, i == 0) + text(r.host + "/" + r.name, PATH) + text(n, NAME)
                     for i, n in names[:1] + names[:0:-1]]
        return struct.pack(">II", 1, len(rows)) + b"".join(rows)

    def stream(self, data):
        number = struct.unpack_from(">Q", data)[0]
        return self.recording.streams[number // 1000][number % 1000 - 1]

    def next_index(self, data):
        s, r = self.stream(data), self.recording
        if s.sent < min(len(s.packets), r.released):
            at, size, content, begin, end, lost, stream_class = s.packets[s.sent]
            s.sent += 1
            return struct.pack(">7QII", at, size, content, begin, end, lost, stream_class, 1, 0)
        s.awaited += 1
        over = r.ended and s.sent == len(s.packets)
        return struct.pack(">7QII", 0, 0, 0, 0, 0, 0, 0, 3 if over else 2, 0)

    def packet(self, data):
        at, size = struct.unpack_from(">QI", data, 8)
        part = self.stream(data).data[at:at + size]
        return struct.pack(">III", 1, len(part), 0) + part

    def get_metadata(self, data):
        trace = struct.unpack_from(">Q", data)[0] // 1000
        if trace in self.sent_metadata:
            return struct.pack(">QI", 0, 2)
        self.sent_metadata.add(trace)
        metadata = self.recording.metadata[trace]
        return struct.pack(">QI", len(metadata), 1) + metadata

    def new_streams(self, _):
        return struct.pack(">II", 4 if self.recording.ended else 2, 0)


class Relay:
    """Listens on a free port of 127.0.0.1 until the end of the `with` block."""

    def __init__(self, *recordings):
        self.recordings, self.asked = recordings, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections, self.threads, self.over = [], [], threading.Event()

    # Returns the reply to the `count`th command; None closes the connection.  Tests replace this method.
    @staticmethod
    def fault(_command, _count, answer):
        return answer()

    def url(self, recording=None):
        url = f"net://127.0.0.1:{self.port}"
        return url if recording is None else f"{url}/host/{recording.host}/{recording.name}"

    def hang(self, after=12):
        """Answers some requests, then none until the end of the test; keeps connections open."""
        self.hanging = []

        def silence(_command, count, answer):
            if count > after:
                self.hanging.append(count)
                self.over.wait()
            return answer()
        self.fault = silence

    def _start(self, target):
        self.threads.append(threading.Thread(target=target, daemon=True))
        self.threads[-1].start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            self._start(Viewer(self, connection).serve)

    def __enter__(self):
        self._start(self._accept)
        return self

    def __exit__(self, *_):
        """Closes no socket that a thread may still use: the next relay could get the same file descriptor."""
        self.over.set()
        self.listener.shutdown(socket.SHUT_RDWR)  # close() alone leaves it open while accept() waits
        self.threads[0].join()
        for c in self.connections:
            try:
                c.shutdown(socket.SHUT_RDWR)
            except OSError:  # the viewer closed it
                pass
        for t in self.threads[1:]:
            t.join()
        self.listener.close()


if __name__ == "__main__":  # by hand: relay.py HOST NAME FOLDER [FOLDER ...]
    import sys
    with Relay(Recording(*sys.argv[1:])) as by_hand:
        print(by_hand.url(by_hand.recordings[0]), flush=True)
        while True:
            time.sleep(1)
