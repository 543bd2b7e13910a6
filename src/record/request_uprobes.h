/* Probes of requests: finds the programs of a kind of requests and defines uprobes in tracefs. `index` reads their
 * events as requests. They record nothing until an instance enables them.
 *
 * An event is named srbn_OP_KIND, in the group stealscope_PID_START_rN. It has the fields key (u64, if the probe has a key)
 * and stack (stack pointer, if it shows recursion). A program in a container is found by its process. */
#pragma once

#include "base/base.h"
#include "base/yaml_out.h"
#include "record/record.h"

struct probed_program {
	char *kind;              /* name of the kind of requests */
	char *path;              /* the program's path, in its own container */
	int32_t pid;             /* a process that runs it; 0: none */
	size_t probes;           /* places with a probe */
};

struct request_uprobes {
	char *tracefs;
	char **event;            /* "GROUP/EVENT"; the caller records them */
	size_t events, events_cap;
	struct probed_program *program;
	size_t programs, cap;
};

/* Defines the probes of all specifications in o->request_spec. Returns -1 with *err if one cannot be recorded. Always call
 * request_uprobes_close(). */
int request_uprobes_open(struct request_uprobes *u, const struct record_options *o, const char *tracefs, struct error *err);
/* Removes the definitions; no instance may use them. */
void request_uprobes_close(struct request_uprobes *u);

/* Writes the list `requests` of about.yaml: [{kind, path, probes}, ...]; nothing without probes. */
void request_uprobes_put(const struct request_uprobes *u, struct yaml_out *o);
