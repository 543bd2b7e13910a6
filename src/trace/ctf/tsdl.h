/* What the parser of TSDL consists of: tokens, types, blocks. */
#ifndef STEALSCOPE_TRACE_CTF_TSDL_H
#define STEALSCOPE_TRACE_CTF_TSDL_H

#include <string.h>

#include "trace/ctf/types.h"

#define MOST_KNOWN 16  /* descriptions of integers; a kernel has a dozen, which it repeats for every field */

enum token { END, WORD, NUMBER, TEXT, SIGN };

struct parser {
	struct ctf_metadata *m;
	const char *at, *end;
	enum token token;
	const char *text;  /* of the token; of TEXT without its quotes */
	size_t len;
	struct ctf_named { const char *name; struct ctf_type *type; } *named;  /* types, the innermost scope's last */
	size_t names, names_cap;
	struct tsdl_integer { const char *text; size_t len; struct ctf_type type; } known[MOST_KNOWN];
	size_t knowns;
	unsigned depth;
};

/* tsdl_tokens.c.  A fault is said once, in metadata.why, and makes the rest of the text look empty, so that every loop
 * ends. */
void tsdl_fail(struct parser *p, const char *why);
void tsdl_next(struct parser *p);
char *tsdl_keep(struct parser *p);      /* the token's text */
uint64_t tsdl_number(struct parser *p);
bool tsdl_truth(struct parser *p);
char *tsdl_dotted(struct parser *p);    /* a name with dots: of an attribute, or a field */

/* Inline, so that a text which the compiler knows costs one comparison or two. */
static inline bool tsdl_is(const struct parser *p, const char *text)
{
	return p->len == strlen(text) && memcmp(p->text, text, strlen(text)) == 0 && (p->token == WORD || p->token == SIGN);
}

static inline bool tsdl_accept(struct parser *p, const char *text)
{
	const bool found = tsdl_is(p, text);
	if (found)
		tsdl_next(p);
	return found;
}

static inline void tsdl_expect(struct parser *p, const char *text)
{
	if (!tsdl_accept(p, text))
		tsdl_fail(p, "a syntax that is not understood");
}

/* tsdl_types.c */
struct ctf_type *tsdl_type(struct parser *p);
enum ctf_order tsdl_byte_order(struct parser *p);
void tsdl_skip_value(struct parser *p);
void tsdl_skip_attributes(struct parser *p);  /* and the braces around them */
void tsdl_alias(struct parser *p);       /* behind "typealias" */
void tsdl_definition(struct parser *p);  /* behind "typedef" */
void tsdl_declaration(struct parser *p, struct ctf_type *of);  /* within the braces of a structure or variant */

#endif
