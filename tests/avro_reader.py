"""Readers of Apache Avro object container files: one written from the specification with the standard library only, and one
that calls libavro, if installed."""
import ctypes
import ctypes.util
import io
import json
import struct
import zlib

MAGIC = b"Obj\x01"


def long(f):
    """Reads a number: zigzag, seven bits per byte, lowest first."""
    n = shift = 0
    while True:
        byte = f.read(1)[0]
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return n >> 1 ^ -(n & 1)


def text(f):
    return f.read(long(f))


def value(f, kind):
    if isinstance(kind, list):
        kind = kind[long(f)]
    if isinstance(kind, dict):
        if kind["type"] != "record":
            return value(f, kind["type"])
        return {field["name"]: value(f, field["type"]) for field in kind["fields"]}
    return {"null": lambda: None, "long": lambda: long(f), "double": lambda: struct.unpack("<d", f.read(8))[0],
            "string": lambda: text(f).decode("utf-8")}[kind]()


def read(path):
    """Returns the schema of a file, and its rows."""
    with open(path, "rb") as f:
        data = f.read()
    f, meta, rows = io.BytesIO(data), {}, []
    assert f.read(4) == MAGIC
    while n := long(f):
        assert n > 0
        for _ in range(n):
            key = text(f)
            meta[key] = text(f)
    sync = f.read(16)
    schema = json.loads(meta[b"avro.schema"])
    assert meta[b"avro.codec"] == b"deflate"
    while f.tell() < len(data):
        n, block = long(f), text(f)
        assert f.read(16) == sync
        block = io.BytesIO(zlib.decompress(block, wbits=-15))
        rows += [value(block, schema) for _ in range(n)]
        assert block.read(1) == b""
    return schema, rows


class Value(ctypes.Structure):
    _fields_ = [("iface", ctypes.c_void_p), ("self", ctypes.c_void_p)]


def library():
    name = ctypes.util.find_library("avro") or "libavro.so.23"
    try:
        lib = ctypes.CDLL(name)
    except OSError:
        return None
    for function in ("avro_file_reader_get_writer_schema", "avro_generic_class_from_schema"):
        getattr(lib, function).restype = ctypes.c_void_p
        getattr(lib, function).argtypes = [ctypes.c_void_p]
    lib.avro_generic_value_new.argtypes = [ctypes.c_void_p, ctypes.POINTER(Value)]
    lib.avro_file_reader_read_value.argtypes = [ctypes.c_void_p, ctypes.POINTER(Value)]
    return lib


def plain(row):
    """Returns the row without names of union branches: {"long": 1} -> 1."""
    return {k: next(iter(v.values())) if isinstance(v, dict) else v for k, v in row.items()}


def read_by_library(lib, path, most):
    """Returns the first rows, read by libavro."""
    reader, row, rows = ctypes.c_void_p(), Value(), []
    assert lib.avro_file_reader(path.encode(), ctypes.byref(reader)) == 0
    schema = lib.avro_file_reader_get_writer_schema(reader)
    assert lib.avro_generic_value_new(lib.avro_generic_class_from_schema(schema), ctypes.byref(row)) == 0
    while len(rows) < most and lib.avro_file_reader_read_value(reader, ctypes.byref(row)) == 0:
        encoded = ctypes.c_char_p()
        assert lib.avro_value_to_json(ctypes.byref(row), 1, ctypes.byref(encoded)) == 0
        rows.append(plain(json.loads(encoded.value)))
    lib.avro_file_reader_close(reader)
    return rows
