/* Reader of CTF directories. */
#ifndef STEALSCOPE_TRACE_CTF_CTF_H
#define STEALSCOPE_TRACE_CTF_CTF_H

#include "trace/reader.h"

extern const struct trace_reader ctf_reader;

#endif
