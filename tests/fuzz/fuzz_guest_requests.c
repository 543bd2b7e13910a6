/* Fuzz target: input as a program of a guest, from which the host asks for parts, and finds probes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/elf_reader.h"
#include "record/guest_requests.h"
#include "fuzz_replay.h"

static char commands[1 << 20];
static size_t len;

static void add_command(void *arg, const char *line)
{
	(void)arg;
	const size_t n = strlen(line);
	if (n >= sizeof commands - len || line[n - 1] != '\n' || strchr(line, '\n') != line + n - 1)
		abort();
	memcpy(commands + len, line, n + 1);
	len += n;
}

static void say(void *arg, const char *line)
{
	(void)arg;
	if (!*line)
		abort();
}

/* Instead of the child in elf_reader.c: parses in this process, which is faster, and shows the coverage. */
int elf_reader_start(struct elf_reader *r, const struct elf_source *source, struct error *err)
{
	(void)err;
	*r = (struct elf_reader){ .source = *source, .pid = 1 };
	return 0;
}

int elf_reader_poll(struct elf_reader *r, struct elf_places *p, struct error *err)
{
	const struct elf_source *s = &r->source;
	r->pid = 0;
	return elf_places_parse(p, s->data, s->size, "input", &s->filter, err);
}

void elf_reader_end(struct elf_reader *r)
{
	r->pid = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const spec[] = { "/p:main", "/p:usdt:postgresql:query__start/query__done" };
	struct error err = ERROR_INIT;
	struct guest_request_kinds kinds;
	char list[64];
	if (size == 0)
		return 0;
	commands[len = 0] = '\0';
	if (guest_request_kinds_parse(&kinds, spec, 2, &err))
		abort();
	struct guest_requests *r = guest_requests_new(&kinds, add_command, say, NULL);
	snprintf(list, sizeof list, "1 %zu /p\n", size);
	int rc = guest_requests_list(r, list, &err);
	for (const char *at = commands; rc == 0; at = strchr(at, '\n') + 1) {
		while (!*at && guest_requests_fd(r) >= 0)
			guest_requests_poll(r);
		if (!*at)
			break;
		size_t first, n;
		if (sscanf(at, "read 1 %zu %zu\n", &first, &n) == 2) {
			const size_t offset = first * GUEST_PROGRAM_BLOCK, max = n * GUEST_PROGRAM_BLOCK;
			rc = guest_requests_read(r, (const char *)data + offset, size - offset < max ? size - offset : max, &err);
		} else if (strncmp(at, "commit", 6) == 0) {
			rc = guest_requests_defined(r, "failed 0", &err);
		}
	}
	if (rc || !strstr(commands, "requests_end\n"))
		abort();
	guest_requests_free(r);
	guest_request_kinds_release(&kinds);
	return 0;
}
