/* What the files of trace/ share. */
#ifndef STEALSCOPE_TRACE_INTERNAL_H
#define STEALSCOPE_TRACE_INTERNAL_H

#include "trace/string_table.h"
#include "trace/reader.h"
#include "trace/store.h"
#include "trace/trace.h"

struct trace {
	struct trace_info info;
	char *dir, *machine, *hostname, *tracer, *layout, *uuid;  /* owned; info points to them */
	struct trace_cpu *cpu;    /* of as many as were heard of, by number; begin > end: nothing yet */
	size_t cpus;
	struct trace_vcpu *vcpu;
	size_t vcpus, vcpus_cap;
	struct names names;
	char *saved_names;        /* as struct place has them, but each line ends with a NUL */
	size_t saved_bytes;
	struct store *store;
	struct stream *stream;  /* in the order of their names: equal times are told apart by it */
	size_t streams;
	struct trace_span *twice; /* times of which nobody can tell what happened before what (clock_setback.h), in order */
	size_t twices;
};

/* CPU `cpu` was recorded from begin to end (ns); what the tracer told is worth more than events. */
void trace_covers(struct trace *t, unsigned cpu, int64_t begin, int64_t end, bool told);
/* Fills t->info from the strings and the streams. */
void trace_publish(struct trace *t, enum trace_role role);

/* Appends the places at or below root that a reader reads, in the order of their paths.  Refuses a root without any.  Of
 * several, those that cannot be read are left out, and noted (notes may be NULL). */
int places_find(const char *root, struct place **list, size_t *n, struct notes *notes, struct error *err);
void places_free(struct place *list, size_t n);
/* Notes the streams of a CTF trace that are missing or empty: by what LTTng's indexes say; without them, empty files. */
int missing_streams(const char *folder, struct notes *notes, struct error *err);

/* Can the system read all of it? */
int place_read(const struct place *p, struct error *err);
bool place_same_machine(const struct place *a, const struct place *b);

/* The guest whose folder it is or lies in (guest-NAME).  Else of a folder: its own name; of a trace-cmd file: what the
 * host's file calls it (NULL: nothing; "": it knows it without a name, which the file's own name then is), else the
 * hostname, else from the file's name or its folder's.  malloc'ed. */
char *naming_folder(const char *dir);
char *naming_file(const char *path, const char *recorded, const char *hostname);

#endif
