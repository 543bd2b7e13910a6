/* Kinds of requests and the probes that show them: from the user's specification, or from a table that is shipped for a
 * server (requests/(name).yaml, stealscope-requests(7)). */
#pragma once

#include "base/base.h"

enum request_op { REQUEST_OP_START, REQUEST_OP_YIELD, REQUEST_OP_RESUME, REQUEST_OP_END, REQUEST_OP_DROP,
                  REQUEST_OP_RECEIVE, REQUEST_OPS };
extern const char *const request_op_name[REQUEST_OPS];

#define PROBE_KEY_NONE 0      /* the request of the current thread */
#define PROBE_KEY_RETVAL 255  /* the value that the function returns; other keys: number of an argument, from 1 */

struct request_probe {
	enum request_op op;
	char *provider;          /* of a static probe; NULL: a function */
	char *name;              /* static probe, or function */
	bool at_return;          /* at the function's return */
	bool optional;           /* a program without this function or probe can be recorded all the same */
	unsigned label;          /* number of the argument with the request's text; 0: none */
	unsigned key;            /* identifies the request; PROBE_KEY_* or number of an argument */
};

struct request_kind {
	char *name;              /* letters, digits and '_' */
	char *about;             /* one sentence for people; NULL: none */
	char **program, **path;  /* the programs' file names, if they run; files or patterns (glob), if they do not */
	size_t programs, programs_cap, paths, paths_cap;
	struct request_probe *probe;
	size_t probes, probes_cap;
	bool nested;             /* start and end are in one function: its stack pointer distinguishes nested pairs */
	bool by_user;            /* from a specification: `path` is a file, which must have all probes */
};

/* Parses a specification: [KIND=]PATH:FUNCTION, PATH:BEGIN/END, PATH:usdt:PROVIDER:BEGIN/END, each with @argN; the name of
 * a shipped table; or a file with a table, NAME.yaml. Returns NULL with *err on failure. */
struct request_kind *request_kind_parse(const char *spec, struct error *err);
struct request_kind *request_kind_parse_yaml(const char *file, const char *text, size_t len, struct error *err);
void request_kind_free(struct request_kind *k);  /* NULL is allowed */

/* Returns true if a process of this program (a path) is recorded. */
bool request_kind_has_program(const struct request_kind *k, const char *path);
bool request_probe_starts(const struct request_probe *p);  /* op is start or receive */
/* Returns the name of shipped table i; NULL after the last one. */
const char *request_kind_shipped(size_t i);
/* Returns true if the stack pointer shows the depth of recursion: `nested` is set, or all requests start at entries of
 * functions, end at their returns, and are found by their thread. */
bool request_kind_has_calls(const struct request_kind *k);
