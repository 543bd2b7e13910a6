/* Parser of CTF 2 field classes: converts them to types.
 *
 * In CTF 2, roles and not names define a field's purpose. A field with a role gets the name that CTF 1.8 uses for
 * this purpose; a field that has such a name without the role loses its name. */
#pragma once

#include "trace/ctf/fragments.h"
#include "trace/ctf/types.h"

enum ctf_scope {
	CTF_PACKET_HEADER, CTF_PACKET_CONTEXT, CTF_EVENT_HEADER, CTF_EVENT_CONTEXT, CTF_OWN_CONTEXT, CTF_PAYLOAD, CTF_SCOPES
};

struct fragment_parser {
	struct ctf_metadata *m;
	struct json_object *alias;          /* field classes by alias */
	struct ctf_type *root[CTF_SCOPES];  /* roots to which the field locations may refer; NULL: none */
	const char *clock;                  /* the data stream class's clock; NULL: none */
	enum ctf_scope scope;
	const char *member;  /* name of the member that is parsed next */
	bool has_order;      /* a field with a byte order was parsed */
	unsigned depth;
};

void fragment_fail(struct fragment_parser *p, const char *reason);  /* sets m->reason unless it is set */
/* Parses the structure of a scope from member `key` of the fragment. Returns NULL if the member is missing or not
 * supported. */
struct ctf_type *fragment_structure(struct fragment_parser *p, struct json_object *fragment, const char *key,
                                    enum ctf_scope scope);
