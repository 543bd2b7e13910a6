"""Requests of a Python service, through ctypes:

    import srbn
    srbn.live()
    with srbn.Request() as r:
        work()
    data = r.read()
    print(data.stolen_low_ns, data.stolen_high_ns)
"""
import ctypes
import os
import sys
import time

_library = ctypes.CDLL(os.environ.get("LIBSTEALSCOPE_MARK", "libstealscope-mark.so.1"), use_errno=True)


class Data(ctypes.Structure):
    """struct srbn_data of stealscope-mark(3): times in ns, -1: unknown."""
    _fields_ = [(name, ctypes.c_int64) for name in (
        "latency_ns", "executing_ns", "stolen_low_ns", "stolen_high_ns", "throttled_ns", "wait_ns", "blocked_ns", "unknown_ns",
        "predicted_ns", "predicted_low_ns", "predicted_high_ns", "resolution_ns")]
    _fields_ += [("source", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("culprit", ctypes.c_char * 128)]


_library.srbn_start.restype = ctypes.c_uint64
for _name in ("srbn_yield", "srbn_resume", "srbn_end"):
    getattr(_library, _name).argtypes = [ctypes.c_uint64]
    getattr(_library, _name).restype = None
_library.srbn_read.argtypes = [ctypes.c_uint64, ctypes.POINTER(Data)]
_library.srbn_live.argtypes = [ctypes.c_char_p]
_library.srbn_model.argtypes = [ctypes.c_char_p]
_path = None  # the library does not copy it


def live(path=None):
    """Turns the counters on. Returns the source for this thread."""
    global _path
    _path = path and os.fsencode(path)
    return _library.srbn_live(_path)


def model(path):
    """Loads a model; None unloads it."""
    if _library.srbn_model(path and os.fsencode(path)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


class Request:
    """A request, from `with` to the end of its block."""

    def __enter__(self):
        self.id = _library.srbn_start()
        return self

    def __exit__(self, *exception):
        _library.srbn_end(self.id)

    def pause(self):
        """The thread leaves the request; resume() continues it."""
        _library.srbn_yield(self.id)

    def resume(self):
        _library.srbn_resume(self.id)

    def read(self):
        """Returns the counters, of a request that is open or has ended."""
        data = Data()
        if _library.srbn_read(self.id, ctypes.byref(data)):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return data


if __name__ == "__main__":
    live()
    if len(sys.argv) > 1:
        model(sys.argv[1])
    with Request() as request:
        end = time.perf_counter() + 0.02
        while time.perf_counter() < end:
            pass
        request.pause()
        time.sleep(0.005)
        request.resume()
    d = request.read()
    print(f"latency {d.latency_ns / 1e6:.3f} ms, stolen {d.stolen_low_ns / 1e6:.3f} to {d.stolen_high_ns / 1e6:.3f} ms, "
          f"source {d.source}, flags {d.flags}")
