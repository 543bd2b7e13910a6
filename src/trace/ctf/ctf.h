/* Reader of CTF directories. */
#pragma once

#include "trace/reader.h"

extern const struct trace_reader ctf_reader;
