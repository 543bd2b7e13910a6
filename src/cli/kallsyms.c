#include "cli/kallsyms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/file_open.h"
#include "base/mem.h"

#define LINE_MOST 1024
#define SYMBOLS_MOST 4000000      /* a kernel with all its modules has 200,000 */
#define FUNCTION_MOST (1 << 20)   /* bytes: what is farther behind a function's begin is not in it */

#define MEND "give a copy of the guest's /proc/kallsyms, read there by root"

/* "ffffffff81000000 T _stext" or with "\t[module]" behind: 1, 0 = no function, -1 = no such line. */
static int parse(char *line, struct kallsym *out)
{
	char *end, *name;
	errno = 0;
	out->address = strtoull(line, &end, 16);
	if (end == line || errno || *end != ' ' || !end[1] || end[2] != ' ' || !end[3])
		return -1;
	const char type = end[1];
	name = end + 3;
	name[strcspn(name, " \t\r\n")] = '\0';
	if (!*name)
		return -1;
	out->name = name;
	return strchr("tTwW", type) != NULL;
}

static int by_address(const void *a, const void *b)
{
	const struct kallsym *x = a, *y = b;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int read_lines(FILE *f, const char *path, struct kallsyms *out, struct error *err)
{
	char line[LINE_MOST];
	size_t cap = 0, number = 0;
	bool any = false;
	while (fgets(line, sizeof line, f)) {
		struct kallsym s;
		int is = strchr(line, '\n') || feof(f) ? parse(line, &s) : -1;
		number++;
		if (is < 0)
			return error_set(err, STATUS_INPUT, MEND, "%s: line %zu is not of kallsyms", path, number);
		if (!is)
			continue;
		if (out->symbols == SYMBOLS_MOST)
			return error_set(err, STATUS_INPUT, MEND, "%s: more than %d functions", path, SYMBOLS_MOST);
		any |= s.address != 0;
		s.name = mem_dup(s.name);
		*ARRAY_PUSH(out->symbol, out->symbols, cap) = s;
	}
	if (ferror(f))
		return error_system(err, NULL, "%s", path);
	if (!any)
		return error_set(err, STATUS_INPUT, MEND, "%s: it has no addresses of functions", path);
	return 0;
}

int kallsyms_read(const char *path, struct kallsyms *out, struct error *err)
{
	*out = (struct kallsyms){ 0 };
	FILE *f = file_open(path);
	if (!f)
		return error_read(err, "check the path", "--kallsyms: %s", path);
	int rc = read_lines(f, path, out, err);
	fclose(f);
	if (rc < 0)
		kallsyms_release(out);
	else
		qsort(out->symbol, out->symbols, sizeof *out->symbol, by_address);
	return rc;
}

void kallsyms_release(struct kallsyms *k)
{
	for (size_t i = 0; i < k->symbols; i++)
		free(k->symbol[i].name);
	free(k->symbol);
	*k = (struct kallsyms){ 0 };
}

const struct kallsym *kallsyms_at(const struct kallsyms *k, uint64_t address)
{
	size_t at;
	BISECT(at, k->symbols, k->symbol[at].address <= address);
	/* Behind the last function of the kernel, or of a module, nothing tells where it ends. */
	const struct kallsym *s = at ? &k->symbol[at - 1] : NULL;
	return s && at < k->symbols && address - s->address < FUNCTION_MOST ? s : NULL;
}
