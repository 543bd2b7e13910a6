/* Interface between the parts of the TSDL parser: tokens, types, blocks. */
#pragma once

#include <string.h>

#include "trace/ctf/types.h"

#define CACHED_INTEGERS 16  /* cached descriptions of integers; a kernel trace repeats about a dozen for all
                             * its fields */

enum token { END, WORD, NUMBER, TEXT, SIGN };

struct tsdl_parser {
	struct ctf_metadata *m;
	const char *at, *end;
	enum token token;
	const char *text;  /* the token's text; TEXT: without the quotes */
	size_t len;
	/* Named types; the innermost scope's types are the last ones. */
	struct ctf_named { const char *name; struct ctf_type *type; } *named;
	size_t names, names_cap;
	struct tsdl_integer { const char *text; size_t len; struct ctf_type type; } cached[CACHED_INTEGERS];
	size_t n_cached;
	unsigned depth;
};

/* tsdl_tokens.c. Stores the first error in metadata.reason. After an error, the rest of the text appears empty, so that
 * every loop ends. */
void tsdl_fail(struct tsdl_parser *p, const char *reason);
void tsdl_next(struct tsdl_parser *p);
char *tsdl_copy_token(struct tsdl_parser *p);      /* returns the token's text and reads the next token */
uint64_t tsdl_number(struct tsdl_parser *p);
bool tsdl_boolean(struct tsdl_parser *p);
char *tsdl_path(struct tsdl_parser *p);    /* parses a name with dots, of an attribute or field */

/* Returns true if the token is `text`. Inline, because comparing with a constant text costs one or two instructions. */
static inline bool tsdl_at(const struct tsdl_parser *p, const char *text)
{
	return p->len == strlen(text) && memcmp(p->text, text, strlen(text)) == 0 && (p->token == WORD || p->token == SIGN);
}

static inline bool tsdl_accept(struct tsdl_parser *p, const char *text)
{
	const bool found = tsdl_at(p, text);
	if (found)
		tsdl_next(p);
	return found;
}

static inline void tsdl_expect(struct tsdl_parser *p, const char *text)
{
	if (!tsdl_accept(p, text))
		tsdl_fail(p, "syntax error");
}

/* tsdl_types.c */
struct ctf_type *tsdl_type(struct tsdl_parser *p);
enum ctf_order tsdl_byte_order(struct tsdl_parser *p);
void tsdl_skip_value(struct tsdl_parser *p);
void tsdl_skip_attributes(struct tsdl_parser *p);  /* including the braces around them */
void tsdl_alias(struct tsdl_parser *p);       /* parses the text after "typealias" */
void tsdl_definition(struct tsdl_parser *p);  /* parses the text after "typedef" */
void tsdl_declaration(struct tsdl_parser *p, struct ctf_type *of);  /* parses a declaration inside the braces of a
                                                                     * structure or variant */
