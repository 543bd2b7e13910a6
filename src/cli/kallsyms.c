#include "cli/kallsyms.h"

#include <errno.h>

#include "base/bisect.h"
#include "base/file_open.h"

#define MAX_LINE 1024
#define MAX_SYMBOLS 4000000      /* maximum symbol count; a kernel with all its modules has 200,000 */
#define MAX_FUNCTION_SIZE (1 << 20)   /* bytes; addresses farther from a function's start belong to no known function */

#define REMEDY "use a copy of the guest's /proc/kallsyms that root has read"

/* Parses "ffffffff81000000 T _stext", optionally followed by "\t[module]". Returns 1; 0: no function; -1: syntax error. */
static int parse_symbol(char *line, struct kallsym *out)
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

ORDER_BY(by_address, struct kallsym, RISING(address) RISING_TEXT(name))

static int read_lines(FILE *f, const char *path, struct kallsyms *out, struct error *err)
{
	char line[MAX_LINE];
	size_t cap = 0, number = 0;
	bool any = false;
	while (fgets(line, sizeof line, f)) {
		struct kallsym s;
		int found = strchr(line, '\n') || feof(f) ? parse_symbol(line, &s) : -1;
		number++;
		if (found < 0)
			return error_set(err, STATUS_INPUT, REMEDY, "%s: line %zu: not the format of /proc/kallsyms", path, number);
		if (!found)
			continue;
		if (out->symbols == MAX_SYMBOLS)
			return error_set(err, STATUS_INPUT, REMEDY, "%s: more than %d functions", path, MAX_SYMBOLS);
		any |= s.address != 0;
		s.name = mem_dup(s.name);
		*ARRAY_PUSH(out->symbol, out->symbols, cap) = s;
	}
	if (ferror(f))
		return error_system(err, NULL, "%s", path);
	if (!any)
		return error_set(err, STATUS_INPUT, REMEDY, "%s: all addresses are 0", path);
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
	/* The end of the last function of the kernel or a module is unknown. */
	const struct kallsym *s = at ? &k->symbol[at - 1] : NULL;
	return s && at < k->symbols && address - s->address < MAX_FUNCTION_SIZE ? s : NULL;
}
