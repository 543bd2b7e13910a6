/* A look at CTF 1.8 metadata: who recorded it, and on which clock.
 *
 * Only `key = value;` of the blocks trace, env and clock is read, by walking over the tokens: comments, strings and
 * nested blocks are skipped properly.  What the events mean is left to libbabeltrace2, which is also the judge of
 * whether the metadata is right: here, what cannot be understood is skipped. */
#include <ctype.h>
#include <byteswap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_open.h"
#include "base/mem.h"
#include "trace/ctf/fragments.h"
#include "trace/discovery/metadata.h"

#define METADATA_LONGEST (64L << 20)  /* bytes; a kernel's with all its system calls is 0.3 MiB */
#define METADATA_MAGIC 0x75D11D57U
#define CTF_1_8 0x108
#define CTF_2 0x200
#define PACKET_HEADER 37              /* bytes: magic, uuid, checksum, content and packet size in bits, five bytes */

struct token_scan {
	const char *at;
	char token[256];
	bool is_string;
};

static const char *skip_blank(const char *s)
{
	for (;;) {
		s += strspn(s, " \t\r\n");
		const char *end;
		if (s[0] == '/' && s[1] == '*')
			end = strstr(s + 2, "*/");
		else if (s[0] == '/' && s[1] == '/')
			end = strchr(s, '\n');
		else
			return s;
		if (!end)
			return s + strlen(s);
		s = end + (*end == '\n' ? 1 : 2);
	}
}

/* The next token: a word or number, a string without its quotes, or one other character.  False at the end. */
static bool next(struct token_scan *s)
{
	const char *p = s->at = skip_blank(s->at);
	size_t n = 0;
	if (!*p)
		return false;
	s->is_string = *p == '"';
	if (s->is_string) {
		for (p++; *p && *p != '"'; p++) {
			if (*p == '\\' && p[1])
				p++;
			if (n < sizeof s->token - 1)
				s->token[n++] = *p;
		}
		p += *p == '"';
	} else if (isalnum((unsigned char)*p) || *p == '_' || *p == '-') {
		for (; isalnum((unsigned char)*p) || *p == '_' || *p == '-' || *p == '.'; p++)
			if (n < sizeof s->token - 1)
				s->token[n++] = *p;
	} else {
		s->token[n++] = *p++;
	}
	s->token[n] = '\0';
	s->at = p;
	return true;
}

static bool is(const struct token_scan *s, const char *token)
{
	return !s->is_string && strcmp(s->token, token) == 0;
}

static void copy(char *dst, size_t size, const char *value)
{
	const size_t n = strnlen(value, size - 1);
	memcpy(dst, value, n);
	dst[n] = '\0';
}

static void keep(char *dst, size_t size, const char *value)
{
	if (!*dst)
		copy(dst, size, value);
}

struct version {
	char name[64], major[16], minor[16], patch[16];  /* of the tracer */
	char ctf_major[16], ctf_minor[16];
};

static void take(const char *block, const char *key, const char *value, struct metadata *m, struct version *v)
{
	if (strcmp(block, "trace") == 0) {
		if (strcmp(key, "uuid") == 0)
			keep(m->uuid, sizeof m->uuid, value);
		else if (strcmp(key, "major") == 0)
			keep(v->ctf_major, sizeof v->ctf_major, value);
		else if (strcmp(key, "minor") == 0)
			keep(v->ctf_minor, sizeof v->ctf_minor, value);
	} else if (strcmp(block, "clock") == 0) {
		if (strcmp(key, "uuid") == 0)
			keep(m->clock_uuid, sizeof m->clock_uuid, value);
		else if (strcmp(key, "offset") == 0)
			keep(m->clock_offset, sizeof m->clock_offset, value);
	} else if (strcmp(key, "hostname") == 0) {
		keep(m->hostname, sizeof m->hostname, value);
	} else if (strcmp(key, "domain") == 0) {
		keep(m->domain, sizeof m->domain, value);
	} else if (strcmp(key, "tracer_name") == 0) {
		keep(v->name, sizeof v->name, value);
	} else if (strcmp(key, "tracer_major") == 0) {
		keep(v->major, sizeof v->major, value);
	} else if (strcmp(key, "tracer_minor") == 0) {
		keep(v->minor, sizeof v->minor, value);
	} else if (strcmp(key, "tracer_patchlevel") == 0 || strcmp(key, "tracer_patch") == 0) {
		keep(v->patch, sizeof v->patch, value);
	}
}

/* Behind the '{' of a block: its `key = value` pairs, up to its '}'. */
static void scan_block(struct token_scan *s, const char *block, struct metadata *m, struct version *v)
{
	char key[64] = "";
	for (unsigned depth = 1; depth && next(s);) {
		if (is(s, "{")) {
			depth++;
		} else if (is(s, "}")) {
			depth--;
		} else if (depth == 1 && is(s, "=") && next(s)) {
			take(block, key, s->token, m, v);
		} else {
			copy(key, sizeof key, s->token);
		}
	}
}

/* The text out of its packets (CTF 1.8, section 7.1); text that is in no packets stays as it is.  In place.
 * False when a packet is cut short or damaged: libbabeltrace2 2.0 would read such a file for ever.  *version: of the
 * packets, as CTF_1_8. */
static bool unpack(char *text, size_t *len, unsigned *version)
{
	size_t in = 0, out = 0;
	uint32_t magic = 0;
	*version = CTF_1_8;
	if (*len >= sizeof magic)
		memcpy(&magic, text, sizeof magic);
	if (magic != METADATA_MAGIC && bswap_32(magic) != METADATA_MAGIC)
		return true;
	while (*len - in >= PACKET_HEADER) {
		uint32_t content, packet;
		memcpy(&magic, text + in, 4);
		memcpy(&content, text + in + 24, 4);
		memcpy(&packet, text + in + 28, 4);
		if (magic != METADATA_MAGIC) {
			if (bswap_32(magic) != METADATA_MAGIC)
				return false;
			content = bswap_32(content);
			packet = bswap_32(packet);
		}
		if (*version == CTF_1_8)
			*version = (unsigned)((unsigned char)text[in + 35] << 8 | (unsigned char)text[in + 36]);
		content /= 8;
		packet /= 8;
		if (content < PACKET_HEADER || content > packet || packet > *len - in)
			return false;
		memmove(text + out, text + in + PACKET_HEADER, content - PACKET_HEADER);
		out += content - PACKET_HEADER;
		in += packet;
	}
	bool whole = in == *len;
	*len = out;
	return whole;
}

char *metadata_text(const char *dir, size_t *size, struct error *err)
{
	char *path = mem_printf("%s/metadata", dir);
	FILE *f = file_open(path);
	size_t len = 0, cap = 0;
	char *text = NULL;
	while (f && len < METADATA_LONGEST) {
		cap = cap ? 2 * cap : 1 << 16;
		text = mem_resize(text, cap + 1, 1);
		len += fread(text + len, 1, cap - len, f);
		if (len < cap)
			break;
	}
	int status = !f || ferror(f) ? error_read(err, "make it readable for you", "%s", path) : 0;
	if (f)
		fclose(f);
	unsigned version;
	if (!status && !unpack(text, &len, &version)) {
		status = error_set(err, STATUS_INPUT, "copy the trace again", "%s: cut short or damaged", path);
	} else if (!status && version != CTF_1_8 && version != CTF_2) {
		status = error_set(err, STATUS_INPUT, "record CTF 1.8 or 2", "%s: metadata of CTF %u.%u, which cannot be read",
		                   path, version >> 8, version & 255);
	} else if (!status) {
		text[len] = '\0';
		*size = len;
	}
	free(path);
	if (!status)
		return text;
	free(text);
	return NULL;
}

/* Where it does not say, it is taken for 1.8. */
static bool is_ctf_1_8(const struct version *v)
{
	return (!*v->ctf_major || strcmp(v->ctf_major, "1") == 0) && (!*v->ctf_minor || strcmp(v->ctf_minor, "8") == 0);
}

int metadata_read(const char *dir, struct metadata *m, struct error *err)
{
	size_t len;
	char *text = metadata_text(dir, &len, err);
	if (!text)
		return -1;
	bool is_known = true;
	if (ctf_is_fragments(text, len))
		metadata_fragments(text, len, m);
	else
		is_known = metadata_scan(text, m);
	free(text);
	if (is_known)
		return 0;
	return error_set(err, STATUS_INPUT, "record CTF 1.8 or 2", "%s/metadata: of another version of CTF than 1.8 and 2",
	                 dir);
}

bool metadata_scan(const char *text, struct metadata *m)
{
	struct token_scan s = { .at = text };
	struct version v = { "", "", "", "", "", "" };
	char word[16] = "";
	unsigned depth = 0, seen = 0;
	*m = (struct metadata){ 0 };
	while (next(&s)) {
		if (is(&s, "{")) {
			if (!depth && (!strcmp(word, "trace") || !strcmp(word, "env") || !strcmp(word, "clock")))
				scan_block(&s, word, m, &v);
			else
				depth++;
			seen |= !strcmp(word, "trace") ? 1U : !strcmp(word, "env") ? 2U : !strcmp(word, "clock") ? 4U : 0U;
			if (seen == 7)
				break;  /* the rest is event classes */
		} else if (is(&s, "}")) {
			depth -= depth > 0;
		}
		copy(word, sizeof word, s.token);
	}
	metadata_tracer(m, v.name, v.major, v.minor, v.patch);
	return is_ctf_1_8(&v);
}

void metadata_tracer(struct metadata *m, const char *name, const char *major, const char *minor, const char *patch)
{
	if (*name)
		snprintf(m->tracer, sizeof m->tracer, "%s%s%s%s%s%s%s", name, *major ? " " : "", major,
		         *minor ? "." : "", minor, *patch ? "." : "", patch);
}

bool metadata_same_machine(const struct metadata *a, const struct metadata *b)
{
	if (strcmp(a->hostname, b->hostname) != 0)
		return false;
	if (*a->clock_uuid || *b->clock_uuid)
		return strcmp(a->clock_uuid, b->clock_uuid) == 0;
	return *a->hostname && strcmp(a->clock_offset, b->clock_offset) == 0;
}
