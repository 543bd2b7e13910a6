/* Programs: how to get from the beginning of a structure of CTF to its end, and what to take on the way.
 *
 * A structure, or several that follow each other, becomes a list of operations.  Where the metadata fixes the places of
 * fields, they are a block: one check that all of it is there, and reads at places known beforehand, of the wanted fields
 * alone.  Strings, arrays whose length an event says, and variants are walked.  Wanted are the fields whose type has a slot
 * (types.h); their values are left in machine.value[slot].  A program may be run by several threads at a time.
 *
 * Cost: some nanoseconds for each operation; unwanted fields of fixed size cost nothing. */
#ifndef STEALSCOPE_TRACE_CTF_PROGRAM_H
#define STEALSCOPE_TRACE_CTF_PROGRAM_H

#include "trace/ctf/types.h"

/* What a run leaves behind, and reads from. */
struct ctf_value {
	int64_t number;    /* of an integer; of a text its bytes, at most: a zero ends it earlier */
	const char *text;  /* in the packet; NULL: an integer, or not there */
};

struct ctf_machine {
	const unsigned char *packet;  /* where its first byte is, or would be: only [at, end) need be in memory */
	uint64_t at, end;             /* bits of the packet */
	uint64_t clock, id;           /* the latest time (cycles), and event class, that fields said */
	bool has_id;
	struct ctf_value *value;
};

enum ctf_run {
	CTF_RUN_DONE,
	CTF_RUN_SHORT,  /* the structure goes on behind `end`; machine.at is somewhere within */
	CTF_RUN_WRONG,  /* a value that cannot be */
};

struct ctf_program {
	struct ctf_op *op;
	size_t ops, cap;
	uint32_t *conditional;  /* slots that not every run sets: made absent at its beginning */
	size_t conditionals, conditionals_cap;
};

/* Where fields are looked up by their whole names; NULL: there is none. */
struct ctf_scopes {
	struct ctf_type *packet_header, *packet_context, *event_header, *event_context, *own_context, *payload;
};

/* Slots are handed out in order. */
struct ctf_slots { uint32_t next, end; };

/* A slot for the field, if it has none.  False: there is no more. */
bool ctf_want(struct ctf_type *t, struct ctf_slots *slots);
/* Finds the fields that say lengths of arrays and options of variants in `root`, and wants them.  What is wrong, or
 * NULL. */
const char *ctf_resolve(struct ctf_type *root, const struct ctf_scopes *scopes, struct ctf_slots *slots);
/* Wants whatever in the event's header tells its time and class. */
const char *ctf_want_header(struct ctf_type *header, struct ctf_slots *slots);

/* What is known of a place in a packet, in bits: place % modulus == rest; modulus is a power of two. */
struct ctf_place { uint64_t modulus, rest; };
#define CTF_ANYWHERE { 1, 0 }

/* Of structures that follow each other from *place on, which then is behind them; NULLs are passed over.  is_big: the
 * trace's byte order.  is_header: integers that tell time and class do.  What is wrong, or NULL. */
const char *ctf_compile(struct ctf_program *p, struct ctf_type *const *root, size_t roots, struct ctf_place *place,
                        bool is_big, bool is_header);
void ctf_program_release(struct ctf_program *p);

enum ctf_run ctf_run(const struct ctf_program *p, struct ctf_machine *m);
void ctf_tick(struct ctf_machine *m, uint64_t value, unsigned bits);  /* a time of which only some bits are told */

#endif
