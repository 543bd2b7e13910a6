/* Probes of requests in a guest. Its shell cannot read programs, so it sends parts of them on request; the host finds
 * functions and static probes there, and the shell defines the probes.
 *
 * Order: the guest sends a list of programs (frame `programs`). For each, the host asks for blocks of the file (command
 * read; answer: frame `program`), then sends the probes of each kind of requests (commands probe and commit; answer:
 * frame `defined`). The command requests_end ends this. The guest is untrusted: sizes and totals are limited. */
#pragma once

#include "base/base.h"
#include "base/yaml_out.h"
#include "record/request_kinds.h"

#define GUEST_PROGRAM_BLOCK 4096    /* bytes of a block of a program */
#define GUEST_PROGRAM_BLOCKS 256    /* most blocks in an answer */

struct guest_requests;

/* Parsed specifications of all guests. */
struct guest_request_kinds {
	struct request_kind **kind;
	size_t n;
	bool labels;             /* record the texts of requests, such as queries */
};
int guest_request_kinds_parse(struct guest_request_kinds *k, const char *const *spec, size_t specs, struct error *err);
void guest_request_kinds_release(struct guest_request_kinds *k);
/* Returns the assignments of the shell variables `programs` and `paths` for the script; the caller frees. */
char *guest_request_kinds_script(const struct guest_request_kinds *k);

/* send: sends a command line to the guest; say: reports progress to people; both get `arg`. Borrows the kinds. */
struct guest_requests *guest_requests_new(const struct guest_request_kinds *kinds,
                                          void (*send)(void *arg, const char *line),
                                          void (*say)(void *arg, const char *line), void *arg);
void guest_requests_free(struct guest_requests *r);  /* NULL is allowed */

/* These handle the frames `programs`, `program` and `defined`. Return -1 with *err on a protocol error. */
int guest_requests_list(struct guest_requests *r, const char *text, struct error *err);
int guest_requests_read(struct guest_requests *r, const char *data, size_t len, struct error *err);
int guest_requests_defined(struct guest_requests *r, const char *text, struct error *err);

/* A sandboxed child parses a program. The descriptor is readable when guest_requests_poll() has something to do; -1: no
 * child runs. r: NULL is allowed. */
int guest_requests_fd(const struct guest_requests *r);
void guest_requests_poll(struct guest_requests *r);

/* Returns true if the event is one of the defined probes; each is accepted once. */
bool guest_requests_accept(struct guest_requests *r, const char *event);

/* Writes the list `requests` of about.yaml, as request_uprobes_put() does. */
void guest_requests_put(const struct guest_requests *r, struct yaml_out *o);
