/* What the metadata of a CTF trace says: of what types the fields of its packets and events are.
 *
 * Every field has a type node of its own, also where the metadata gives several the same named type: a node holds what is
 * known of that field, such as where its value goes when an event is decoded.  All nodes and strings live in the arena of
 * their struct ctf_metadata and end with it.  Sizes, alignments and offsets are in bits. */
#ifndef STEALSCOPE_TRACE_CTF_TYPES_H
#define STEALSCOPE_TRACE_CTF_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ctf_kind { CTF_INTEGER, CTF_FLOAT, CTF_STRING, CTF_STRUCT, CTF_VARIANT, CTF_ARRAY };
enum ctf_order { CTF_NATIVE /* the trace's */, CTF_LITTLE, CTF_BIG };

#define CTF_NO_SLOT UINT32_MAX
#define CTF_DEEPEST 32  /* types within types */

struct ctf_label {  /* of an enumeration: the values [lower, upper], signed when its integer is */
	const char *name;
	uint64_t lower, upper;
	struct ctf_label *next;
};

struct ctf_member {  /* of a structure, or option of a variant */
	const char *name;
	struct ctf_type *type;
	struct ctf_member *next;
	const char *said;             /* (CTF 2) its name in the metadata, where `name` is its role's */
	struct ctf_label *range;      /* (CTF 2) of an option: when it is there; else the label of its name says */
};

struct ctf_type {
	enum ctf_kind kind;
	enum ctf_order order;
	uint32_t align;
	uint32_t size;                /* of integers and floats */
	bool is_signed;
	bool is_variable;             /* of integers: LEB128, `size` is 0 */
	bool is_boolean;
	bool is_utf8;                 /* of integers: they are characters */
	bool is_text;                 /* of arrays: a string */
	const char *clock;            /* that the integer is a time of; NULL: none */
	struct ctf_label *label;
	struct ctf_member *member;    /* the first */
	struct ctf_type *element;
	uint64_t length;              /* of an array, when `where` is NULL */
	const char *where;            /* the field that says the array's length, or which option the variant has */
	struct ctf_type *teller;      /* that field, once it is found */
	uint32_t slot;                /* see program.h */
	bool is_placed;               /* it is in a program */
};

struct ctf_clock {
	const char *name;
	uint64_t frequency;           /* Hz */
	int64_t offset_s;             /* from the epoch: seconds, and cycles beside them */
	int64_t offset;
	struct ctf_clock *next;
};

struct ctf_event {
	uint64_t id, stream_id;
	bool has_stream_id;
	const char *name;
	struct ctf_type *context, *payload;  /* NULL: none */
	struct ctf_event *next;
};

struct ctf_stream {
	uint64_t id;
	bool has_id;                  /* (CTF 1.8) it says so */
	struct ctf_type *packet_context, *event_header, *event_context;
	struct ctf_stream *next;
};

struct ctf_arena { struct ctf_chunk *chunk; size_t used, nodes, bytes /* in all */; };

struct ctf_metadata {
	struct ctf_arena arena;
	bool big;                     /* the trace's byte order */
	bool has_order, has_uuid;
	unsigned char uuid[16];
	struct ctf_type *packet_header;
	struct ctf_clock *clock;
	struct ctf_stream *stream;
	struct ctf_event *event;
	const char *why;              /* it cannot be used: what it has that is not understood; NULL: it can */
};

void ctf_metadata_release(struct ctf_metadata *m);
/* The text of CTF 1.8 metadata (TSDL).  What is wrong, or not understood, is said in m->why. */
void ctf_metadata_parse(struct ctf_metadata *m, const char *text, size_t len);
/* The same of CTF 2 metadata (json). */
void ctf_metadata_fragments(struct ctf_metadata *m, const char *text, size_t len);

void *ctf_alloc(struct ctf_arena *a, size_t size);  /* zeroed */
char *ctf_text(struct ctf_arena *a, const char *s, size_t len);

/* NULL: more than is sensible. */
struct ctf_type *ctf_type_new(struct ctf_arena *a, enum ctf_kind kind, uint32_t align);
struct ctf_type *ctf_type_copy(struct ctf_arena *a, const struct ctf_type *t);
struct ctf_member *ctf_member_add(struct ctf_arena *a, struct ctf_type *t, const char *name, struct ctf_type *type);
struct ctf_type *ctf_member_find(const struct ctf_type *t, const char *name, size_t len);

static inline bool ctf_is_called(const char *name, const char *want, size_t len)
{
	size_t same = 0;
	while (same < len && name[same] == want[same])
		same++;
	return same == len && !name[len];
}

#endif
