/* Traces of CTF 1.8 told again in CTF 2: the same streams, with metadata in json. */
#ifndef STEALSCOPE_TESTS_CTF2_H
#define STEALSCOPE_TESTS_CTF2_H

/* Of every trace below the folder `from`; `to` is a new folder. */
void ctf2_convert(const char *from, const char *to);

#endif
