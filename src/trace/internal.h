/* Private declarations, shared by the files of trace/. */
#pragma once

#include "trace/string_table.h"
#include "trace/reader.h"
#include "trace/store.h"
#include "trace/trace.h"

struct trace {
	struct trace_info info;
	char *dir, *machine, *hostname, *vm_id, *tracer, *layout, *uuid;  /* owned; t->info points to them */
	struct trace_cpu *cpu;    /* indexed by CPU number: all recorded CPUs and all CPUs to which events send threads;
	                           * begin > end: nothing recorded */
	size_t cpus;
	struct trace_vcpu *vcpu;
	size_t vcpus, vcpus_cap;
	struct string_table names;
	char *saved_names;        /* "TID NAME" lines as in struct trace_location, but terminated by NULs; NULL: none */
	size_t saved_bytes;
	struct store *store;
	struct stream *stream;  /* sorted by name; of events with equal times, the event of the stream with the lower index
	                         * comes first */
	size_t streams;
	struct trace_interval *setback; /* intervals of times that occur twice because the clock was set back
	                                 * (clock_setback.h), sorted */
	size_t setbacks;
};

/* Extends a CPU's recorded interval to include [begin, end], ns. is_recorded: the tracer recorded it; false: it is derived
 * from event times. */
void trace_add_coverage(struct trace *t, unsigned cpu, int64_t begin, int64_t end, bool is_recorded);
/* Fills t->info from the other members of *t. */
void trace_publish(struct trace *t, enum trace_role role);

/* Appends the locations at or below root that a reader can read, sorted by path. Fails if there is none. Unreadable
 * locations are skipped with a note if others can be read, or if skip_all is set (notes may be NULL). Returns 0 or -1. */
int find_locations(const char *root, struct trace_location **list, size_t *n, bool skip_all, struct notes *notes,
                   struct error *err);
void locations_free(struct trace_location *list, size_t n);
/* Adds notes about streams of a CTF trace without data: those in LTTng's index but not in a file, and empty stream
 * files. Returns 0 or -1. */
int missing_streams(const char *dir, struct notes *notes, struct error *err);

/* Replaces each location from index `first` on that contains several machines by one location for each. */
void split_locations(struct trace_location **list, size_t *n, size_t first);
/* Removes the locations from index `first` on, except that of the machine `name` (FILE#MACHINE). Returns 0, or -1 if the
 * file has no such machine. */
int select_machine(struct trace_location *list, size_t *n, size_t first, const char *name, struct error *err);
void location_release(struct trace_location *p);  /* frees the members */

/* Reads all files of the location, to check that the system can read them. Returns 0, or -1 with the system's error. */
int location_check_readable(const struct trace_location *p, struct error *err);
bool location_same_machine(const struct trace_location *a, const struct trace_location *b);

/* Return a machine's default name, malloc'ed. The first of these that exists:
 * - NAME, if the path is a directory guest-NAME or lies directly in one;
 * - for a directory: its own name;
 * - for a trace-cmd file: `recorded`, the name in the host's file (NULL: the host's file does not list this guest; "":
 *   it lists the guest without a name, then the name is taken from the file's own name), or the hostname, or the name of
 *   the file or of its directory. */
char *machine_name_of_dir(const char *dir);
char *machine_name_of_file(const char *path, const char *recorded, const char *hostname);
