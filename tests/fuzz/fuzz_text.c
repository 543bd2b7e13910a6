/* Fuzz target: input as lines of a trace in text form, split into fields; and as the name of an entry in an archive. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_replay.h"
#include "index/archive.h"
#include "trace/text/text_line.h"

/* Checks that a text lies in the line, or is a constant, which the parser uses for names only. */
static void check_inside(const char *text, size_t len, const char *line, size_t line_len)
{
	if (len && (text < line || text > line + line_len || len > (size_t)(line + line_len - text)))
		abort();
}

static void check_line(const char *line, size_t len)
{
	struct text_line l;
	struct text_fields f;
	uint32_t cpu;
	int64_t count;
	if (text_line_is_loss(line, len, &cpu, &count) && count < -1)
		abort();
	if (!text_line_parse(line, len, &l))
		return;
	if (l.ns < 0 || l.tid < 0 || l.pid < -1 || l.cpu > UINT16_MAX || l.precision < 1 || !l.event[0] ||
	    strlen(l.event) >= TEXT_NAME_MAX)
		abort();
	check_inside(l.comm, l.comm_len, line, len);
	check_inside(l.fields, l.fields_len, line, len);
	text_line_fields(&l, &f);
	if (f.len > TEXT_FIELDS_MAX)
		abort();
	for (size_t i = 0; i < f.len; i++)
		if (f.field[i].is_text)
			check_inside(f.field[i].text, f.field[i].len, line, len);
}

static void check_name(const char *text)
{
	char clean[ARCHIVE_NAME_MAX];
	if (!archive_clean_name(text, clean))
		return;
	if (!clean[0] || clean[0] == '/' || strlen(clean) >= sizeof clean || strstr(clean, "//") || !strcmp(clean, "..") ||
	    !strncmp(clean, "../", 3) || strstr(clean, "/../") || (strlen(clean) > 2 && !strcmp(clean + strlen(clean) - 3, "/..")))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	copy[size] = '\0';
	check_name(copy);
	for (char *at = copy, *end; at <= copy + size; at = end + 1) {
		end = memchr(at, '\n', (size_t)(copy + size - at));
		end = end ? end : copy + size;
		char *line = malloc((size_t)(end - at) + 1);  /* exact size, for the sanitizer */
		memcpy(line, at, (size_t)(end - at));
		check_line(line, (size_t)(end - at));
		free(line);
	}
	free(copy);
	return 0;
}
