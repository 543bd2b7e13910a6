/* Scanner of CTF 1.8 metadata: finds the names of machine and trace, and the clock.
 *
 * Reads only `key = value;` in the blocks trace, env and clock, token by token; comments, strings and nested blocks are
 * recognized and skipped, and so is everything unknown. The decoders read the event classes, and check the whole
 * metadata. */
#include <ctype.h>
#include <byteswap.h>

#include "base/file_open.h"
#include "trace/ctf/fragments.h"
#include "trace/discovery/metadata.h"

#define METADATA_MAX (64L << 20)  /* maximum size, bytes; a kernel trace with all system calls has 0.3 MiB */
#define METADATA_MAGIC 0x75D11D57U
#define CTF_1_8 0x108
#define CTF_2 0x200
#define PACKET_HEADER 37              /* bytes: magic, UUID, checksum, content and packet size in bits, five more bytes */

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

/* Reads the next token: a word or number, a string without its quotes, or any other single character. Returns false at
 * the text's end. */
static bool next_token(struct token_scan *s)
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

static bool is_token(const struct token_scan *s, const char *token)
{
	return !s->is_string && strcmp(s->token, token) == 0;
}

static void copy_text(char *dst, size_t size, const char *value)
{
	const size_t n = strnlen(value, size - 1);
	memcpy(dst, value, n);
	dst[n] = '\0';
}

static void set_if_empty(char *dst, size_t size, const char *value)
{
	if (!*dst)
		copy_text(dst, size, value);
}

struct tracer_version {
	char name[64], major[16], minor[16], patch[16];  /* name and version of the tracer */
	char ctf_major[16], ctf_minor[16];
};

static void set_member(const char *block, const char *key, const char *value, struct metadata *m, struct tracer_version *v)
{
	if (strcmp(block, "trace") == 0) {
		if (strcmp(key, "uuid") == 0)
			set_if_empty(m->uuid, sizeof m->uuid, value);
		else if (strcmp(key, "major") == 0)
			set_if_empty(v->ctf_major, sizeof v->ctf_major, value);
		else if (strcmp(key, "minor") == 0)
			set_if_empty(v->ctf_minor, sizeof v->ctf_minor, value);
	} else if (strcmp(block, "clock") == 0) {
		if (strcmp(key, "uuid") == 0)
			set_if_empty(m->clock_uuid, sizeof m->clock_uuid, value);
		else if (strcmp(key, "name") == 0)
			m->is_monotonic = strcmp(value, "monotonic") == 0;
		else if (strcmp(key, "offset") == 0)
			set_if_empty(m->clock_offset, sizeof m->clock_offset, value);
	} else if (strcmp(key, "hostname") == 0) {
		set_if_empty(m->hostname, sizeof m->hostname, value);
	} else if (strcmp(key, "domain") == 0) {
		set_if_empty(m->domain, sizeof m->domain, value);
	} else if (strcmp(key, "tracer_name") == 0) {
		set_if_empty(v->name, sizeof v->name, value);
	} else if (strcmp(key, "tracer_major") == 0) {
		set_if_empty(v->major, sizeof v->major, value);
	} else if (strcmp(key, "tracer_minor") == 0) {
		set_if_empty(v->minor, sizeof v->minor, value);
	} else if (strcmp(key, "tracer_patchlevel") == 0 || strcmp(key, "tracer_patch") == 0) {
		set_if_empty(v->patch, sizeof v->patch, value);
	}
}

/* Scans the `key = value` pairs of a block. *s is after the '{' of the block, and after its '}' on return. */
static void scan_block(struct token_scan *s, const char *block, struct metadata *m, struct tracer_version *v)
{
	char key[64] = "";
	for (unsigned depth = 1; depth && next_token(s);) {
		if (is_token(s, "{")) {
			depth++;
		} else if (is_token(s, "}")) {
			depth--;
		} else if (depth == 1 && is_token(s, "=") && next_token(s)) {
			set_member(block, key, s->token, m, v);
		} else {
			copy_text(key, sizeof key, s->token);
		}
	}
}

/* Removes the packet headers from the text, in the same buffer (CTF 1.8, section 7.1); a text without packets stays
 * unchanged. Returns false if a packet is truncated, damaged, compressed or encrypted: libbabeltrace2 2.0 would read some
 * of these files forever. *version: version in the packet headers, such as CTF_1_8. */
static bool remove_packet_headers(char *text, size_t *len, unsigned *version)
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
		if (content < PACKET_HEADER || content > packet || packet > *len - in ||
		    memcmp(text + in + 32, "\0\0\0", 3) != 0)  /* schemes of compression, encryption and checksums */
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
	while (f && len < METADATA_MAX) {
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
	if (!status && !remove_packet_headers(text, &len, &version)) {
		status = error_set(err, STATUS_INPUT, "copy the trace again", "%s: truncated or damaged", path);
	} else if (!status && version != CTF_1_8 && version != CTF_2) {
		status = error_set(err, STATUS_INPUT, "record CTF 1.8 or 2", "%s: unsupported metadata version CTF %u.%u",
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

/* Returns true for version 1.8, and for metadata without a version. */
static bool is_ctf_1_8(const struct tracer_version *v)
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
	if (ctf_is_json_metadata(text, len))
		metadata_fragments(text, len, m);
	else
		is_known = metadata_scan(text, m);
	free(text);
	if (is_known)
		return 0;
	return error_set(err, STATUS_INPUT, "record CTF 1.8 or 2", "%s/metadata: unsupported version of CTF",
	                 dir);
}

bool metadata_scan(const char *text, struct metadata *m)
{
	struct token_scan s = { .at = text };
	struct tracer_version v = { "", "", "", "", "", "" };
	char word[16] = "";
	unsigned depth = 0, seen = 0;
	*m = (struct metadata){ 0 };
	while (next_token(&s)) {
		if (is_token(&s, "{")) {
			if (!depth && (!strcmp(word, "trace") || !strcmp(word, "env") || !strcmp(word, "clock")))
				scan_block(&s, word, m, &v);
			else
				depth++;
			seen |= !strcmp(word, "trace") ? 1U : !strcmp(word, "env") ? 2U : !strcmp(word, "clock") ? 4U : 0U;
			if (seen == 7)
				break;  /* only event classes follow */
		} else if (is_token(&s, "}")) {
			depth -= depth > 0;
		}
		copy_text(word, sizeof word, s.token);
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
