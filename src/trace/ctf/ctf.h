/* CTF traces in folders, read by ourselves; what is not understood, or damaged, is left to libbabeltrace2. */
#ifndef STEALSCOPE_TRACE_CTF_CTF_H
#define STEALSCOPE_TRACE_CTF_CTF_H

#include "trace/reader.h"

extern const struct trace_reader ctf_reader;

#endif
