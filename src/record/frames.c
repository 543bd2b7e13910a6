#include "record/frames.h"

#include <sys/random.h>
#include <sys/types.h>

#include "record/proc.h"

#define NOISE_MAX 65536  /* bytes allowed before the first frame */
#define REMEDY "make sure that the guest starts a plain shell: another program answered"

#define FRAME_ROW(code, name, max_bytes) { name, max_bytes },
static const struct { const char *name; uint64_t max_bytes; } kinds[] = { FRAMES(FRAME_ROW) };

const char *frame_name(enum frame kind)
{
	return kinds[kind].name;
}

int frames_init(struct frames *f, int (*on_frame)(void *arg, enum frame kind, unsigned cpu, const char *data, size_t len,
                                              struct error *err), void *arg, struct error *err)
{
	static const char digit[] = "0123456789abcdef";
	unsigned char bytes[FRAME_KEY / 2];
	*f = (struct frames){ .on_frame = on_frame, .arg = arg };
	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return error_system(err, NULL, "cannot draw a random session key");
	for (size_t i = 0; i < FRAME_KEY; i++)
		f->key[i] = digit[bytes[i / 2] >> (i % 2 ? 0 : 4) & 15];
	return 0;
}

void frames_release(struct frames *f)
{
	free(f->text);
	f->text = NULL;
}

/* Parses "cpu12". */
static bool parse_cpu(const char *text, unsigned *cpu)
{
	uint64_t n;
	if (strncmp(text, "cpu", 3) != 0 || !proc_parse_number(text + 3, FRAME_CPUS - 1, &n))
		return false;
	*cpu = (unsigned)n;
	return true;
}

static bool parse_name(struct frames *f, const char *name)
{
	f->cpu = 0;
	for (size_t i = 0; i < FRAME_KINDS; i++) {
		const size_t n = strlen(kinds[i].name);
		const bool per_cpu = kinds[i].name[n - 1] == '/';
		if (per_cpu ? strncmp(name, kinds[i].name, n) == 0 && parse_cpu(name + n, &f->cpu)
		           : strcmp(name, kinds[i].name) == 0) {
			f->kind = (enum frame)i;
			return true;
		}
	}
	return false;
}

static int end_body(struct frames *f, struct error *err)
{
	int rc = 0;
	if (f->kind != FRAME_PAGES) {
		f->text[f->text_len] = '\0';
		rc = f->on_frame(f->arg, f->kind, f->cpu, f->text, f->text_len, err);
	}
	frames_release(f);
	f->in_body = false;
	return rc;
}

static int begin_body(struct frames *f, char *line, struct error *err)
{
	char *name = line + FRAME_KEY + 1, *bytes = strchr(name, ' ');
	if (bytes)
		*bytes++ = '\0';
	if (!bytes || !parse_name(f, name) || !proc_parse_number(bytes, kinds[f->kind].max_bytes, &f->remaining))
		return error_set(err, STATUS_INPUT, REMEDY, "protocol error: unexpected frame '%s %s'", name,
		                 bytes ? bytes : "");
	f->in_body = f->begun = true;
	f->text_len = 0;
	f->text = f->kind == FRAME_PAGES ? NULL : mem_new((size_t)f->remaining + 1, 1);
	return f->remaining == 0 ? end_body(f, err) : 0;
}

static int end_line(struct frames *f, struct error *err)
{
	f->head[f->head_len] = '\0';
	f->head_len = 0;
	if (strncmp(f->head, f->key, FRAME_KEY) == 0 && f->head[FRAME_KEY] == ' ')
		return begin_body(f, f->head, err);
	if (!f->begun)
		return 0;
	return error_set(err, STATUS_INPUT, REMEDY, "protocol error: the guest sent '%.40s' instead of a frame", f->head);
}

/* Returns the number of bytes consumed, or -1. */
static ssize_t parse_header(struct frames *f, const char *data, size_t len, struct error *err)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n')
			return end_line(f, err) ? -1 : (ssize_t)i + 1;
		if (f->head_len < sizeof f->head - 1)
			f->head[f->head_len++] = data[i];
		if (!f->begun && ++f->skipped > NOISE_MAX)
			return error_set(err, STATUS_INPUT, REMEDY, "protocol error: the guest sent %d bytes without a frame",
			                 NOISE_MAX);
		if (f->begun && f->head_len == sizeof f->head - 1)
			return end_line(f, err) ? -1 : (ssize_t)i + 1;
	}
	return (ssize_t)len;
}

static ssize_t parse_body(struct frames *f, const char *data, size_t len, struct error *err)
{
	const size_t n = len < f->remaining ? len : (size_t)f->remaining;
	if (f->kind == FRAME_PAGES && f->on_frame(f->arg, f->kind, f->cpu, data, n, err))
		return -1;
	if (f->kind != FRAME_PAGES)
		memcpy(f->text + f->text_len, data, n);
	f->text_len += n;
	f->remaining -= n;
	return f->remaining == 0 && end_body(f, err) ? -1 : (ssize_t)n;
}

int frames_feed(struct frames *f, const char *data, size_t len, struct error *err)
{
	while (len > 0) {
		const ssize_t n = f->in_body ? parse_body(f, data, len, err) : parse_header(f, data, len, err);
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

bool frames_incomplete(const struct frames *f)
{
	return f->in_body || f->head_len > 0;
}
