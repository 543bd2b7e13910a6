/* Programs: lists of operations that decode consecutive CTF structures.
 *
 * - Fields at constant offsets form a block: one bounds check, then reads of the wanted fields at known offsets.
 * - Strings, arrays with a dynamic length and variants are decoded one after the other.
 * - A field is wanted if its type has a slot (types.h). The value is stored in ctf_interpreter.value[slot].
 *
 * Threads: a program is read-only while it runs. Cost: some ns per operation; unwanted fields of constant size cost
 * nothing. */
#pragma once

#include "trace/ctf/types.h"

/* A field's value. */
struct ctf_value {
	int64_t number;    /* an integer's value; maximum size of a string in bytes, which may be shorter if it contains a
	                    * NUL */
	const char *text;  /* text in the packet; NULL: an integer, or absent */
};

struct ctf_interpreter {
	const unsigned char *packet;  /* address of the packet's first byte; only the bits [at, end) need to be in memory */
	uint64_t at, end;             /* offsets in the packet, bits */
	uint64_t clock, id;           /* latest time (cycles) and last event class id that were decoded */
	bool has_id;
	struct ctf_value *value;
};

enum ctf_run {
	CTF_RUN_DONE,
	CTF_RUN_SHORT,    /* the structure extends beyond `end`; `at` is inside the structure */
	CTF_RUN_INVALID,  /* the packet contains an invalid value */
};

struct ctf_program {
	struct ctf_op *op;
	size_t ops, cap;
	uint32_t *conditional;  /* slots that some runs do not set; each run first sets them to EVENT_ABSENT */
	size_t conditionals, conditionals_cap;
};

/* The scopes' roots, for finding fields by absolute path; NULL: none. */
struct ctf_scopes {
	struct ctf_type *packet_header, *packet_context, *event_header, *event_context, *own_context, *payload;
};

/* Range of free slots, assigned in order. */
struct ctf_slots { uint32_t next, end; };

/* Assigns a slot to the field if it has none. Returns false if no slot is free. */
bool ctf_assign_slot(struct ctf_type *t, struct ctf_slots *slots);
/* Finds the fields that contain lengths of arrays or select options of variants in `root`, and assigns slots to them.
 * Returns NULL, or an unsupported feature's name. */
const char *ctf_resolve_controls(struct ctf_type *root, const struct ctf_scopes *scopes, struct ctf_slots *slots);
/* Assigns slots to the fields of the event header that contain the time and the class. Returns NULL, or the name of an
 * unsupported feature. */
const char *ctf_assign_header_slots(struct ctf_type *header, struct ctf_slots *slots);

/* Known part of a bit position in a packet: position % modulus == remainder; modulus is a power of two. */
struct ctf_position { uint64_t modulus, remainder; };
#define CTF_UNKNOWN_POSITION { 1, 0 }

/* Compiles the structures root[0], root[1], ... (NULLs are skipped), the first of which starts at *position. Sets
 * *position to the end of the last one. is_big: the trace's byte order; is_header: fields for the time and the class
 * have their special meaning. Returns NULL, or an unsupported feature's name. */
const char *ctf_compile(struct ctf_program *p, struct ctf_type *const *root, size_t roots, struct ctf_position *position,
                        bool is_big, bool is_header);
void ctf_program_release(struct ctf_program *p);

enum ctf_run ctf_run(const struct ctf_program *p, struct ctf_interpreter *m);
void ctf_update_clock(struct ctf_interpreter *m, uint64_t value, unsigned bits);  /* extends a timestamp of `bits` bits
                                                                                   * to 64 bits */
