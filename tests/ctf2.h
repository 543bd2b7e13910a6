/* Converts CTF 1.8 traces to CTF 2: same streams, metadata in JSON. */
#pragma once

/* Converts every trace below `from`; `to` is an empty directory. */
void ctf2_convert(const char *from, const char *to);
