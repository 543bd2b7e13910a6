"""The program has the hardening that configure found: position independent, read-only relocations, no executable stack,
canaries."""
import os
import re
import struct

from e2e import BUILD, PROGRAM, check, skip

PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 2, 0x6474e551, 0x6474e552
DT_FLAGS, DF_BIND_NOW, DT_FLAGS_1, DF_1_NOW, DF_1_PIE = 30, 8, 0x6ffffffb, 1, 0x08000000


def flags_of(name):
    with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as f:
        return re.search(rf"^{name} =(.*)$", f.read(), re.MULTILINE).group(1).split()


def read_elf(data):
    """Returns {type: (offset, size, flags)} of the segments, and {tag: value} of the dynamic section."""
    at, = struct.unpack_from("<Q", data, 32)
    size, number = struct.unpack_from("<HH", data, 54)
    segments, tags = {}, {}
    for i in range(number):
        kind, flags, offset, _, _, length = struct.unpack_from("<IIQQQQ", data, at + i * size)
        segments[kind] = (offset, length, flags)
    offset, length, _ = segments.get(PT_DYNAMIC, (0, 0, 0))
    for i in range(offset, offset + length, 16):
        tag, value = struct.unpack_from("<QQ", data, i)
        tags[tag] = value
    return segments, tags


with open(PROGRAM, "rb") as f:
    program = f.read()
compiler, linker = flags_of("HARD_CFLAGS"), flags_of("HARD_LDFLAGS")
if program[:6] != b"\x7fELF\2\1" or not compiler:
    skip("built without hardening, or not for a 64-bit little-endian machine")
segments, tags = read_elf(program)
check(segments[PT_GNU_STACK][2] & 1 == 0, "no executable stack")
check("-pie" not in linker or tags.get(DT_FLAGS_1, 0) & DF_1_PIE, "position independent")
check("-Wl,-z,relro" not in linker or PT_GNU_RELRO in segments, "read-only relocations")
check("-Wl,-z,now" not in linker or tags.get(DT_FLAGS, 0) & DF_BIND_NOW or tags.get(DT_FLAGS_1, 0) & DF_1_NOW, "symbols are bound at start")
check("-fstack-protector-strong" not in compiler or b"__stack_chk_fail" in program, "canaries")
check(not any("FORTIFY" in flag for flag in compiler) or b"_chk\0" in program, "checked copies")
