/* Reader of Perfetto traces (protobuf files of traced and tracebox) with ftrace events.
 *
 * A file is a row of packets. Packets with a bundle contain the events of one CPU, read from the kernel's buffer at one
 * time; other packets contain clock snapshots, thread names, and counters. Packets of one writer (a sequence) are in
 * the order of writing. A trace of several machines (traced_relay) contains the packets of all of them, each with the
 * machine's id; each machine becomes a location of its own.
 *
 * describe() scans the file once and lists each machine's bundles, sequence and CPU, which form a stream. Compressed
 * packets are decompressed then; their bundles are written to a scratch file. decode() reads a stream's bundles.
 * Memory: 16 bytes per bundle, and one packet. */
#pragma once

#include "trace/reader.h"

extern const struct trace_reader perfetto_reader;
