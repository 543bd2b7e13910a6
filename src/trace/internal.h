/* What the files of trace/ share. */
#ifndef STEALSCOPE_TRACE_INTERNAL_H
#define STEALSCOPE_TRACE_INTERNAL_H

#include <sys/types.h>

#include "trace/dat.h"
#include "trace/names.h"
#include "trace/record.h"
#include "trace/trace.h"

struct trace {
	struct trace_info info;
	char *dir, *machine, *hostname, *tracer, *layout, *uuid;  /* owned; info points to them */
	struct trace_vcpu *vcpu;
	size_t vcpus, vcpus_cap;
	struct names names;
	struct store *store;
	struct stream *stream;  /* in the order of their names: equal times are told apart by it */
	size_t streams;
};

/* Fills t->info from the strings and the streams. */
void trace_publish(struct trace *t, enum trace_role role);

/* The parts of a CTF 1.8 metadata text that tell which machine and which trace it is; "" when not said. */
struct metadata {
	char hostname[256], domain[16], tracer[128], uuid[40], clock_uuid[40], clock_offset[48];
};
/* Do two CTF traces come from one machine, with one clock? */
bool metadata_same_machine(const struct metadata *a, const struct metadata *b);
void metadata_tracer(struct metadata *m, const char *name, const char *major, const char *minor, const char *patch);
void metadata_scan(const char *text, struct metadata *m);
int metadata_read(const char *dir, struct metadata *m, struct error *err);

/* A folder that holds a CTF trace, or a file of trace-cmd. */
struct ctf_dir {
	char *path;
	bool is_file;     /* trace-cmd's */
	struct dat *dat;  /* what that says; else NULL */
	struct metadata meta;
	dev_t device;    /* of its metadata: a trace reached by two paths is one trace */
	ino_t inode;
	uint64_t bytes;  /* of the files in it and below */
};

/* Appends the traces at or below root, in the order of their paths.  Refuses a root without any. */
int ctf_find(const char *root, struct ctf_dir **list, size_t *n, struct error *err);
void ctf_dirs_free(struct ctf_dir *list, size_t n);
bool ctf_same_machine(const struct ctf_dir *a, const struct ctf_dir *b);

/* In a child process that may crash: the caller's handlers of fatal signals are not for it. */
void child_begin(void);

/* The guest whose folder it is or lies in (guest-NAME).  Else of a folder: its own name; of a trace-cmd file: what the
 * host's file calls it (NULL: nothing; "": it knows it without a name, which the file's own name then is), else the
 * hostname, else from the file's name or its folder's.  malloc'ed. */
char *naming_folder(const char *dir);
char *naming_file(const char *path, const char *recorded, const char *hostname);

#endif
