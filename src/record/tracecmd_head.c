#include "record/tracecmd_head.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/events.h"

#define FORMATS_MAX (1 << 20)  /* bytes of all formats */
#define EVENTS_MAX 65536     /* bytes of the list of events */
#define OPTION_SYSTEM 5      /* id of the option with the output of uname */

/* Bytes of the head that were not parsed yet; at: NULL after an error. */
struct head_rest { const unsigned char *at; size_t len; };

static struct head_text read_bytes(struct head_rest *r, uint64_t len)
{
	const struct head_text text = { (const char *)r->at, (size_t)len };
	if (!r->at || len > r->len) {
		r->at = NULL;
		return (struct head_text){ "", 0 };
	}
	r->at += len;
	r->len -= (size_t)len;
	return text;
}

/* Reads a number in the guest's byte order, which is that of the host. */
static uint64_t read_number(struct head_rest *r, size_t bytes)
{
	const struct head_text t = read_bytes(r, bytes);
	uint16_t x16;
	uint32_t x32;
	uint64_t x64;
	if (t.len == sizeof x16)
		return memcpy(&x16, t.at, sizeof x16), x16;
	if (t.len == sizeof x32)
		return memcpy(&x32, t.at, sizeof x32), x32;
	return t.len == sizeof x64 ? (memcpy(&x64, t.at, sizeof x64), x64) : 0;
}

static void expect_text(struct head_rest *r, const char *expected, size_t len)
{
	const struct head_text t = read_bytes(r, len);
	if (r->at && memcmp(t.at, expected, len) != 0)
		r->at = NULL;
}

static struct head_text read_word(struct head_rest *r)
{
	const void *end = r->at ? memchr(r->at, '\0', r->len) : NULL;
	return read_bytes(r, end ? (size_t)((const unsigned char *)end - r->at) + 1 : SIZE_MAX);
}

/* Adds an event's format file, "name: sched_switch\n...". Returns -1 if it is malformed. */
static int add_format(struct agent_head *h, const char *system, struct head_text format)
{
	char name[128], *all = mem_printf("%.*s", (int)(format.len < 256 ? format.len : 256), format.at);
	const bool has = sscanf(all, "name: %60[a-zA-Z0-9_]", name) == 1;
	free(all);
	char *event = mem_printf("%s/%s", system, has ? name : "");
	const bool complete = has && event_is_name(event) && format.at[format.len - 1] == '\n';
	if (complete) {
		char *events = mem_printf("%s %s", h->events, event);
		free(h->events);
		h->events = events;
		h->formats = mem_resize(h->formats, h->formats_len + format.len + 1, 1);
		memcpy(h->formats + h->formats_len, format.at, format.len);
		h->formats_len += format.len;
		h->formats[h->formats_len] = '\0';
	}
	free(event);
	return complete && h->formats_len < FORMATS_MAX && strlen(h->events) < EVENTS_MAX ? 0 : -1;
}

static int parse_systems(struct agent_head *h, struct head_rest *r)
{
	for (uint64_t systems = read_number(r, 4); systems > 0 && r->at; systems--) {
		const struct head_text system = read_word(r);
		for (uint64_t n = read_number(r, 4); n > 0 && r->at; n--) {
			const struct head_text format = read_bytes(r, read_number(r, 8));
			if (!r->at || memchr(format.at, '\0', format.len) || add_format(h, system.at, format))
				return -1;
		}
	}
	return 0;
}

static void parse_options(struct agent_head *h, struct head_rest *r)
{
	expect_text(r, "options  ", 10);
	for (uint64_t id; r->at && (id = read_number(r, 2)) != 0;) {
		const struct head_text value = read_bytes(r, read_number(r, 4));
		if (id == OPTION_SYSTEM && !h->system)
			h->system = mem_printf("%.*s", (int)(value.len < 512 ? value.len : 512), value.at);
	}
}

int agent_head_parse(struct agent_head *h, const void *bytes, size_t len)
{
	struct head_rest r = { bytes, len };
	*h = (struct agent_head){ .events = mem_dup(""), .formats = mem_dup("") };
	expect_text(&r, "\x17\x08\x44tracing6", 12);
	read_bytes(&r, 2 + 4);  /* byte order, size of a long, page size */
	expect_text(&r, "header_page", 12);
	h->header_page = read_bytes(&r, read_number(&r, 8));
	expect_text(&r, "header_event", 13);
	h->header_event = read_bytes(&r, read_number(&r, 8));
	for (uint64_t n = read_number(&r, 4); n > 0 && r.at; n--)
		read_bytes(&r, read_number(&r, 8));  /* formats of ftrace's own events */
	if (parse_systems(h, &r))
		return -1;
	read_bytes(&r, read_number(&r, 4));  /* symbols */
	read_bytes(&r, read_number(&r, 4));  /* formats of printk */
	h->commands = read_bytes(&r, read_number(&r, 8));
	read_bytes(&r, 4);  /* CPUs */
	parse_options(h, &r);
	return r.at ? 0 : -1;
}

void agent_head_release(struct agent_head *h)
{
	free(h->events);
	free(h->formats);
	free(h->system);
}
