#include "truth_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/int128.h"
#include "base/mem.h"

static FILE *open_file(const char *dir, const char *name, char *line, int size)
{
	char *path = mem_printf("%s/truth/%s", dir, name);
	FILE *f = fopen(path, "r");

	if (!f || !fgets(line, size, f)) {
		fprintf(stderr, "%s: cannot be read\n", path);
		if (f)
			fclose(f);
		f = NULL;
	}
	free(path);
	return f;
}

static const char *alias(const struct truth_file *t, const char *name)
{
	for (size_t i = 0; i < t->aliases; i++)
		if (!strcmp(t->alias[i].name, name))
			return t->alias[i].is;
	return name;
}

/* Renames "/Virtual Machines/NAME/..." to the name that the analysis uses. */
static void rename_vm(const struct truth_file *t, const char *line, char *path, size_t size)
{
	static const char root[] = "/Virtual Machines/";
	const char *name = line + strlen(root), *rest;

	snprintf(path, size, "%s", line);
	if (strncmp(line, root, strlen(root)) || !(rest = strchr(name, '/')))
		return;
	for (size_t i = 0; i < t->aliases; i++)
		if (strlen(t->alias[i].name) == (size_t)(rest - name) && !strncmp(t->alias[i].name, name, (size_t)(rest - name)))
			snprintf(path, size, "%s%s%s", root, t->alias[i].is, rest);
}

static void add(struct truth_file *t, const char *path, const char *value, int64_t start, int64_t end)
{
	uint32_t id = strtab_put(&t->strings, path);
	bool is_new;
	uint64_t *slot = map_put(&t->by_path, id, &is_new);

	if (is_new) {
		*ARRAY_PUSH(t->attr, t->attrs, t->attr_cap) = (struct truth_attr){ .path = id };
		*slot = t->attrs;
	}
	struct truth_attr *a = &t->attr[*slot - 1];
	*ARRAY_PUSH(a->iv, a->n, a->cap) = (struct truth_interval){ start, end, strtab_put(&t->strings, value) };
}

static bool read_intervals(struct truth_file *t, const char *dir)
{
	char line[1024], *comma[3];
	FILE *f = open_file(dir, "intervals.csv", line, sizeof line);

	if (!f)
		return false;
	while (fgets(line, sizeof line, f)) {
		char *p = line;

		line[strcspn(line, "\n")] = 0;
		for (int i = 0; i < 3; i++) {
			p = comma[i] = strchr(p, ',');
			if (!p) {
				fclose(f);
				return false;
			}
			*p++ = 0;
		}
		char path[1100];
		rename_vm(t, line, path, sizeof path);
		add(t, path, alias(t, comma[2] + 1), strtoll(comma[0] + 1, NULL, 10), strtoll(comma[1] + 1, NULL, 10));
	}
	fclose(f);
	return true;
}

static bool read_clocks(struct truth_file *t, const char *dir)
{
	char line[1024];
	FILE *f = open_file(dir, "clocks.csv", line, sizeof line);

	if (!f)
		return false;
	while (fgets(line, sizeof line, f)) {
		struct truth_clock *c = ARRAY_PUSH(t->clock, t->clocks, t->clock_cap);

		if (sscanf(line, "%31[^,],%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64, c->machine, &c->from, &c->ref_host,
		           &c->ref_guest, &c->rate) != 5) {
			fclose(f);
			return false;
		}
	}
	fclose(f);
	return true;
}

static bool read_info(struct truth_file *t, const char *dir)
{
	char line[1024];
	FILE *f = open_file(dir, "info.csv", line, sizeof line);

	if (!f)
		return false;
	while (fgets(line, sizeof line, f)) {
		sscanf(line, "begin,%" SCNd64, &t->begin);
		sscanf(line, "end,%" SCNd64, &t->end);
	}
	fclose(f);
	return t->begin < t->end;
}

static bool read_traces(struct truth_file *t, const char *dir)
{
	char line[1024];
	FILE *f = open_file(dir, "traces.csv", line, sizeof line);

	if (!f)
		return false;
	while (fgets(line, sizeof line, f)) {
		struct truth_span *s = ARRAY_PUSH(t->span, t->spans, t->span_cap);

		if (sscanf(line, "%31[^,],%" SCNd64 ",%" SCNd64, s->machine, &s->first, &s->last) != 3) {
			fclose(f);
			return false;
		}
	}
	fclose(f);
	return true;
}

/* Returns the machine that runs a VM; NULL for the host. A VM without a trace may be named by its process. */
static const char *parent_of(const struct truth_file *t, const char *machine)
{
	int pid = 0;

	(void)sscanf(machine, "VM %d", &pid);
	for (size_t i = 0; i < t->vcpus; i++)
		if (!strcmp(t->vcpu[i].vm, machine) || (pid && !t->vcpu[i].traced && t->vcpu[i].host_pid == pid))
			return t->vcpu[i].parent;
	return NULL;
}

bool truth_is_process(const struct truth_file *t, const char *vm, const char *name)
{
	char process[32];

	for (size_t i = 0; i < t->vcpus; i++) {
		snprintf(process, sizeof process, "VM %d", t->vcpu[i].host_pid);
		if (!strcmp(t->vcpu[i].vm, vm) && !strcmp(process, name))
			return true;
	}
	return false;
}

bool truth_traced(const struct truth_file *t, const char *path)
{
	char vm[32] = "host";

	sscanf(path, "/Virtual Machines/%31[^/]", vm);
	for (size_t i = 0; i < t->spans; i++)
		if (!strcmp(t->span[i].machine, vm))
			return true;
	return false;
}

bool truth_nested(const struct truth_file *t, const char *path)
{
	char vm[32] = "host";

	sscanf(path, "/Virtual Machines/%31[^/]", vm);
	const char *parent = parent_of(t, vm);
	return parent && strcmp(parent, "host") != 0;
}

void truth_window(const struct truth_file *t, const char *path, int64_t *from, int64_t *to)
{
	char vm[32] = "host";

	sscanf(path, "/Virtual Machines/%31[^/]", vm);
	*from = t->begin;
	*to = t->end;
	for (const char *machine = vm; machine; machine = parent_of(t, machine))
		for (size_t i = 0; i < t->spans; i++) {
			const struct truth_span *s = &t->span[i];

			if (strcmp(s->machine, machine))
				continue;
			*from = s->first > *from ? s->first : *from;
			*to = s->last < *to ? s->last : *to;
		}
}

static bool is_known(const struct truth_file *t, const char *machine)
{
	bool known = !strcmp(machine, "host");

	for (size_t i = 0; i < t->vcpus; i++)
		known = known || (t->vcpu[i].traced && !strcmp(t->vcpu[i].vm, machine));
	return known;
}

/* Adds aliases for untraced VMs, which the analysis names by process if it finds them. */
static void name_untraced(struct truth_file *t)
{
	for (size_t i = 0; i < t->vcpus; i++) {
		const struct truth_vcpu *v = &t->vcpu[i];

		if (v->traced || v->number || !is_known(t, v->parent))
			continue;
		struct truth_alias *a = ARRAY_PUSH(t->alias, t->aliases, t->alias_cap);
		snprintf(a->name, sizeof a->name, "%s", v->vm);
		snprintf(a->is, sizeof a->is, "VM %d", v->host_pid);
	}
}

static bool read_vms(struct truth_file *t, const char *dir)
{
	char line[1024];
	FILE *f = open_file(dir, "vcpus.csv", line, sizeof line);

	if (!f)
		return false;
	while (fgets(line, sizeof line, f)) {
		struct truth_vcpu *v = ARRAY_PUSH(t->vcpu, t->vcpus, t->vcpu_cap);

		if (sscanf(line, "%31[^,],%u,%d,%d,%d,%31[^,\n]", v->vm, &v->number, &v->host_tid, &v->host_pid, &v->traced,
		           v->parent) != 6) {
			fclose(f);
			return false;
		}
	}
	fclose(f);
	name_untraced(t);
	return true;
}

bool truth_read(struct truth_file *t, const char *dir)
{
	*t = (struct truth_file){ .attr = NULL };
	strtab_init(&t->strings);
	return read_vms(t, dir) && read_intervals(t, dir) && read_clocks(t, dir) && read_info(t, dir) && read_traces(t, dir);
}

void truth_release(struct truth_file *t)
{
	for (size_t i = 0; i < t->attrs; i++)
		free(t->attr[i].iv);
	free(t->attr);
	free(t->clock);
	free(t->alias);
	free(t->span);
	free(t->vcpu);
	map_release(&t->by_path);
	strtab_release(&t->strings);
}

const struct truth_attr *truth_find(const struct truth_file *t, const char *path)
{
	/* strtab_put() adds unknown paths, which does no harm here. */
	uint64_t *slot = map_find(&t->by_path, strtab_put((struct strtab *)&t->strings, path));

	return slot ? &t->attr[*slot - 1] : NULL;
}

int64_t truth_guest_time(const struct truth_file *t, const char *machine, int64_t host)
{
	const struct truth_clock *c = NULL;

	for (size_t i = 0; i < t->clocks; i++)
		if (!strcmp(t->clock[i].machine, machine) && (!c || t->clock[i].from <= host))
			c = &t->clock[i];
	if (!c)
		return INT64_MIN;
	return c->ref_guest + (host - c->ref_host) + (int64_t)(((int128)(host - c->ref_host) * c->rate) >> 60);
}

bool truth_is_repeated(const struct truth_file *t, const char *machine, int64_t guest)
{
	for (size_t i = 0; i < t->clocks; i++) {
		const int64_t at = t->clock[i].from;

		if (!strcmp(t->clock[i].machine, machine) && at > t->begin && guest <= truth_guest_time(t, machine, at - 1) &&
		    guest >= truth_guest_time(t, machine, at))
			return true;
	}
	return false;
}

const char *history_text_of(const struct history *h, uint32_t attr, int64_t value, char buf[32])
{
	if (value == HISTORY_NULL)
		return "null";
	switch (history_type(h, attr)) {
	case HISTORY_STATE:
		return history_state_name(h, attr, (unsigned)value);
	case HISTORY_STRING:
		return history_string(h, value);
	case HISTORY_REF:
		snprintf(buf, 32, "%s/%" PRIu32, history_string(h, history_ref_text(value)), history_ref_number(value));
		return buf;
	default:
		snprintf(buf, 32, "%" PRId64, value);
		return buf;
	}
}

const char *truth_value(const struct truth_file *t, const char *path, int64_t when)
{
	const struct truth_attr *a = truth_find(t, path);

	for (size_t i = 0; a && i < a->n; i++)
		if (a->iv[i].start <= when && a->iv[i].end >= when)
			return strtab_get(&t->strings, a->iv[i].value);
	return NULL;
}

bool truth_is_unknown(const char *value)
{
	return !strcmp(value, "UNKNOWN") || !strcmp(value, "unknown") || !strcmp(value, "null") ||
	       !strcmp(value, "quota or others") ||
	       !strncmp(value, "VM of TID ", 10);
}

void truth_remove(const char *dir)
{
	char *command = mem_printf("rm -rf '%s'", dir);

	if (system(command) != 0)
		fprintf(stderr, "%s: not removed\n", dir);
	free(command);
}
