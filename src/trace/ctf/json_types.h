/* Field classes of CTF 2 -> types.  What a field is for, its roles say, not its name: here it gets the name that it has in
 * CTF 1.8, and fields that have such a name without the role lose theirs. */
#ifndef STEALSCOPE_TRACE_CTF_JSON_TYPES_H
#define STEALSCOPE_TRACE_CTF_JSON_TYPES_H

#include "trace/ctf/fragments.h"
#include "trace/ctf/types.h"

enum ctf_scope {
	CTF_PACKET_HEADER, CTF_PACKET_CONTEXT, CTF_EVENT_HEADER, CTF_EVENT_CONTEXT, CTF_OWN_CONTEXT, CTF_PAYLOAD, CTF_SCOPES
};

struct fragment_parser {
	struct ctf_metadata *m;
	struct json_object *alias;             /* field classes by their names */
	struct ctf_type *root[CTF_SCOPES];     /* what locations may point to; NULL: there is none */
	const char *clock;                     /* of the data stream, or NULL */
	enum ctf_scope scope;
	const char *member;                    /* that comes */
	bool has_order;                        /* some field has told one */
	unsigned depth;
};

void fragment_fail(struct fragment_parser *p, const char *why);  /* the first one is kept */
/* The structure of that scope, of the fragment's key; NULL: it has none, or it is not understood. */
struct ctf_type *fragment_structure(struct fragment_parser *p, struct json_object *fragment, const char *key,
                                    enum ctf_scope scope);

#endif
