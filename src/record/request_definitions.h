/* Definitions of the request probes, as tracefs takes them, for one program. */
#pragma once

#include "base/base.h"
#include "record/elf_probes.h"
#include "record/request_kinds.h"

struct request_definition {
	const char *type;        /* "p", or "r" at a function's return */
	char *event;             /* "srbn_OP_KIND" */
	char *place;             /* offset in the file and fetch arguments: "0x1234(0x20) key=%di:u64" */
	bool has_counter;        /* a static probe with a reference counter, which needs Linux 4.20 */
};

struct request_definitions {
	struct request_definition *item;
	size_t n, cap;
};

/* Appends the definitions of all probes of a kind in a program. labels: record the texts of requests, too. Returns -1 with
 * *err if the program lacks one that is not optional, or if an argument cannot be fetched. Always call
 * request_definitions_release(). */
int request_definitions_add(struct request_definitions *d, const struct request_kind *k, const struct elf_places *places,
                            bool labels, struct error *err);
void request_definitions_release(struct request_definitions *d);

/* Filter for elf_places_parse(): the places of a kind's probes; arg: struct request_kind. */
bool request_definitions_want(const void *arg, const char *provider, const char *name);
