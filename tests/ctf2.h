/* Converts CTF 1.8 traces to CTF 2: same streams, metadata in JSON. */
#ifndef STEALSCOPE_TESTS_CTF2_H
#define STEALSCOPE_TESTS_CTF2_H

/* Converts every trace below `from`; `to` is an empty directory. */
void ctf2_convert(const char *from, const char *to);

#endif
