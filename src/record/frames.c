#include "record/frames.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/mem.h"
#include "record/proc.h"

#define NOISE_LONGEST 65536  /* bytes before the first frame */
#define MEND "what runs in the guest in place of its shell?"

#define FRAME_ROW(code, name, most) { name, most },
static const struct { const char *name; uint64_t most; } kinds[] = { FRAMES(FRAME_ROW) };

int frames_init(struct frames *f, int (*take)(void *arg, enum frame what, unsigned cpu, const char *data, size_t len,
                                              struct error *err), void *arg, struct error *err)
{
	static const char digit[] = "0123456789abcdef";
	unsigned char bytes[FRAME_KEY / 2];
	*f = (struct frames){ .take = take, .arg = arg };
	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return error_system(err, NULL, "random numbers");
	for (size_t i = 0; i < FRAME_KEY; i++)
		f->key[i] = digit[bytes[i / 2] >> (i % 2 ? 0 : 4) & 15];
	return 0;
}

void frames_release(struct frames *f)
{
	free(f->text);
	f->text = NULL;
}

/* "cpu12" */
static bool parse_cpu(const char *text, unsigned *cpu)
{
	uint64_t n;
	if (strncmp(text, "cpu", 3) != 0 || !proc_is_number(text + 3, FRAME_CPUS - 1, &n))
		return false;
	*cpu = (unsigned)n;
	return true;
}

static bool parse_name(struct frames *f, const char *name)
{
	f->cpu = 0;
	for (size_t i = 0; i < FRAME_KINDS; i++) {
		const size_t n = strlen(kinds[i].name);
		const bool of_cpu = kinds[i].name[n - 1] == '/';
		if (of_cpu ? strncmp(name, kinds[i].name, n) == 0 && parse_cpu(name + n, &f->cpu)
		           : strcmp(name, kinds[i].name) == 0) {
			f->what = (enum frame)i;
			return true;
		}
	}
	return false;
}

static int end_body(struct frames *f, struct error *err)
{
	int rc = 0;
	if (f->what != FRAME_PAGES) {
		f->text[f->text_len] = '\0';
		rc = f->take(f->arg, f->what, f->cpu, f->text, f->text_len, err);
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
	if (!bytes || !parse_name(f, name) || !proc_is_number(bytes, kinds[f->what].most, &f->left))
		return error_set(err, STATUS_INPUT, MEND, "the guest sends '%s %s', which is nothing that was asked for", name,
		                 bytes ? bytes : "");
	f->in_body = f->begun = true;
	f->text_len = 0;
	f->text = f->what == FRAME_PAGES ? NULL : mem_new((size_t)f->left + 1, 1);
	return f->left == 0 ? end_body(f, err) : 0;
}

static int end_line(struct frames *f, struct error *err)
{
	f->head[f->head_len] = '\0';
	f->head_len = 0;
	if (strncmp(f->head, f->key, FRAME_KEY) == 0 && f->head[FRAME_KEY] == ' ')
		return begin_body(f, f->head, err);
	if (!f->begun)
		return 0;
	return error_set(err, STATUS_INPUT, MEND, "the guest sends '%.40s' where a frame should be", f->head);
}

/* Returns how many bytes were taken, or -1. */
static ssize_t take_head(struct frames *f, const char *data, size_t len, struct error *err)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n')
			return end_line(f, err) ? -1 : (ssize_t)i + 1;
		if (f->head_len < sizeof f->head - 1)
			f->head[f->head_len++] = data[i];
		if (!f->begun && ++f->skipped > NOISE_LONGEST)
			return error_set(err, STATUS_INPUT, MEND, "the guest sends something else than was asked for");
		if (f->begun && f->head_len == sizeof f->head - 1)
			return end_line(f, err) ? -1 : (ssize_t)i + 1;
	}
	return (ssize_t)len;
}

static ssize_t take_body(struct frames *f, const char *data, size_t len, struct error *err)
{
	const size_t n = len < f->left ? len : (size_t)f->left;
	if (f->what == FRAME_PAGES && f->take(f->arg, f->what, f->cpu, data, n, err))
		return -1;
	if (f->what != FRAME_PAGES)
		memcpy(f->text + f->text_len, data, n);
	f->text_len += n;
	f->left -= n;
	return f->left == 0 && end_body(f, err) ? -1 : (ssize_t)n;
}

int frames_take(struct frames *f, const char *data, size_t len, struct error *err)
{
	while (len > 0) {
		const ssize_t n = f->in_body ? take_body(f, data, len, err) : take_head(f, data, len, err);
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

bool frames_are_cut(const struct frames *f)
{
	return f->in_body || f->head_len > 0;
}
