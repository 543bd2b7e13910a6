/* Types of the fields in a CTF trace, as described by the trace's metadata.
 *
 * Every field has its own type node, even if the metadata uses a named type several times, because the node contains the
 * state of the field, such as its value's slot. The arena of struct ctf_metadata owns all nodes and strings. Sizes,
 * alignments and offsets are in bits. */
#pragma once

#include "base/base.h"

enum ctf_kind { CTF_INTEGER, CTF_FLOAT, CTF_STRING, CTF_STRUCT, CTF_VARIANT, CTF_ARRAY };
enum ctf_order { CTF_NATIVE /* the trace's byte order */, CTF_LITTLE, CTF_BIG };

#define CTF_NO_SLOT UINT32_MAX
#define CTF_MAX_DEPTH 32  /* maximum nesting of types */

struct ctf_label {  /* enumeration label for the values [lower, upper], which are signed if the integer is */
	const char *name;
	uint64_t lower, upper;
	struct ctf_label *next;
};

struct ctf_member {  /* member of a structure, or option of a variant */
	const char *name;
	struct ctf_type *type;
	struct ctf_member *next;
	const char *source_name;  /* CTF 2: name in the metadata; `name` may come from a role */
	struct ctf_label *range;  /* CTF 2, a variant's option: values that select the option; NULL: the label with the
	                           * option's name */
};

struct ctf_type {
	enum ctf_kind kind;
	enum ctf_order order;
	uint32_t align;
	uint32_t size;  /* integers and floats only */
	bool is_signed;
	bool is_variable;  /* integer encoded as LEB128; `size` is 0 */
	bool is_boolean;
	bool is_utf8;       /* the integer is a character of a text */
	bool is_text;       /* the array is a string */
	const char *clock;  /* name of the clock if the integer is a timestamp; NULL: it is not */
	struct ctf_label *label;
	struct ctf_member *member;  /* first member */
	struct ctf_type *element;
	uint64_t length;           /* elements of an array if control_path is NULL */
	const char *control_path;  /* path of the field that contains the array's length or selects the variant's option */
	struct ctf_type *control;  /* field at control_path; NULL: not found yet */
	uint32_t slot;             /* the value's slot, see program.h; CTF_NO_SLOT: not needed */
	bool is_compiled;          /* the program decodes this field */
};

struct ctf_clock {
	const char *name;
	uint64_t frequency;  /* cycles per second */
	int64_t offset_s;    /* offset from the epoch: offset_s seconds plus `offset` cycles */
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
	bool has_id;  /* CTF 1.8: the metadata contains an id */
	struct ctf_type *packet_context, *event_header, *event_context;
	struct ctf_stream *next;
};

struct ctf_arena { struct ctf_chunk *chunk; size_t used, nodes, bytes /* total of all chunks */; };

struct ctf_metadata {
	struct ctf_arena arena;
	bool is_big_endian;  /* the trace's byte order */
	bool has_order, has_uuid;
	unsigned char uuid[16];
	struct ctf_type *packet_header;
	struct ctf_clock *clock;
	struct ctf_stream *stream;
	struct ctf_event *event;
	const char *reason;  /* error, or name of an unsupported feature; NULL: usable */
};

void ctf_metadata_release(struct ctf_metadata *m);
/* Parses CTF 1.8 metadata (TSDL). Stores an error or unsupported feature in m->reason. */
void ctf_metadata_parse(struct ctf_metadata *m, const char *text, size_t len);
/* Parses CTF 2 metadata (JSON). Stores an error or unsupported feature in m->reason. */
void ctf_metadata_parse_json(struct ctf_metadata *m, const char *text, size_t len);

void *ctf_alloc(struct ctf_arena *a, size_t size);  /* the memory is zeroed */
char *ctf_copy_text(struct ctf_arena *a, const char *s, size_t len);

/* The following functions return NULL if a limit is exceeded. */
struct ctf_type *ctf_type_new(struct ctf_arena *a, enum ctf_kind kind, uint32_t align);
struct ctf_type *ctf_type_copy(struct ctf_arena *a, const struct ctf_type *t);
struct ctf_member *ctf_member_add(struct ctf_arena *a, struct ctf_type *t, const char *name, struct ctf_type *type);
struct ctf_type *ctf_member_find(const struct ctf_type *t, const char *name, size_t len);

static inline bool ctf_name_equals(const char *name, const char *wanted, size_t len)
{
	size_t same = 0;
	while (same < len && name[same] == wanted[same])
		same++;
	return same == len && !name[len];
}
