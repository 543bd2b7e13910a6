/* Lines of events as text: files `trace` and `trace_pipe` of tracefs, output of `trace-cmd report` and `perf script`.
 *
 *     bash-2163    (  2160) [001] d..2. 54543.123456: sched_switch: prev_comm=bash ...     ftrace, trace-cmd
 *     bash  2160/2163 [001] 54543.123456789:          sched:sched_switch: prev_comm=...      perf script
 *
 * A line of any other form is no event. */
#pragma once

#include "base/base.h"

#define TEXT_LINE_MAX 8192  /* bytes of a line that are read */
#define TEXT_NAME_MAX 64    /* length of an event's name with its zero byte */
#define TEXT_FIELDS_MAX 24  /* fields of an event that are read */

struct text_line {
	const char *comm;       /* name of the current thread */
	size_t comm_len;        /* 0: not recorded */
	int32_t tid, pid;       /* pid -1: not recorded */
	uint32_t cpu;
	int64_t ns;             /* time */
	int64_t precision;      /* the time's unit, ns */
	bool is_perf;
	char event[TEXT_NAME_MAX];  /* without the system */
	const char *fields;     /* rest of the line */
	size_t fields_len;
};

/* Parses a line without its line break. Returns false if it is no event. */
bool text_line_parse(const char *line, size_t len, struct text_line *out);

/* Parses a line "CPU:1 [LOST 12 EVENTS]". *count: event count; -1: unknown. */
bool text_line_is_loss(const char *line, size_t len, uint32_t *cpu, int64_t *count);

/* Fields of an event by name. The names and texts refer to the line, or are constants. */
struct text_field {
	const char *name, *text;
	size_t name_len, len;
	int64_t number;
	bool is_text;
};
struct text_fields { struct text_field field[TEXT_FIELDS_MAX]; size_t len; };

/* Splits an event's fields. */
void text_line_fields(const struct text_line *l, struct text_fields *out);
