/* Finds the span servers.
 *
 * Machine: the attributes of span_host_key are compared with the machines' names. Equal names count before names
 * with a domain; different answers, and different domains of one machine, mean none.
 *
 * Server: the thread in thread.id, if it belongs to the process in process.pid; else all threads of that process; else the
 * machine as a whole. Numbers of a container's own, or of a runtime environment, may be equal to those of other threads:
 * therefore a thread must have run, and of a process one of its threads, when the span began and when it ended. If the
 * process of a thread is unknown, it may be this one: then its time counts, too.
 *
 * Cost: the PIDs of a machine's threads are read once for each process; then a few lookups for each span and thread of the
 * process. */
#include "latency/span_place.h"

#include <ctype.h>
#include <strings.h>

#include "base/base.h"

/* A process's threads. */
struct span_process {
	uint32_t *thread;        /* indices into the catalog: first the members, then the threads of unknown processes */
	size_t members, threads, cap;
};

struct span_places {
	const struct catalog *catalog;
	const struct spans *spans;
	const struct span_clocks *clocks;
	int32_t *machine;             /* of each source: index, or NO_MACHINE */
	struct map by_pid;            /* (machine, pid) to 1 + index of the process */
	struct span_process *process;
	size_t processes, processes_cap;
	bool *interleaved;            /* of each span: its thread works for other spans meanwhile */
};

/* ---- Machines ----------------------------------------------------------------------------------------------- */

enum name_match { MATCH_NONE, MATCH_DOMAIN, MATCH_EQUAL };

/* Compares a text with a name; the text may have a domain. */
static enum name_match match_name(const char *text, const char *name)
{
	const size_t n = name ? strlen(name) : 0;
	if (!n || strncasecmp(text, name, n) != 0)
		return MATCH_NONE;
	return text[n] == '\0' ? MATCH_EQUAL : text[n] == '.' ? MATCH_DOMAIN : MATCH_NONE;
}

/* Returns true if the texts have the same letters and digits: systemd writes the UUID of a VM without hyphens. */
static bool is_same_id(const char *a, const char *b)
{
	size_t n = 0;
	for (; b && *a && *b; n++) {
		while (*a == '-')
			a++;
		while (*b == '-')
			b++;
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
		a += *a != '\0';
		b += *b != '\0';
	}
	return n > 0 && !*a && !*b;
}

/* Compares a text with the names of machine m. "host" is the name that every history gives to its host: only the host name
 * in its trace counts. */
static enum name_match match_machine(const struct span_places *p, const char *text, uint32_t m)
{
	const struct catalog_machine *machine = &p->catalog->machine[m];
	const struct span_clock *clock = &p->clocks->machine[m];
	const enum name_match host = match_name(text, clock->hostname);
	const enum name_match name = machine->kind == MACHINE_HOST ? MATCH_NONE : match_name(text, machine->name);
	return is_same_id(text, clock->vm_id) ? MATCH_EQUAL : host > name ? host : name;
}

/* Returns the machine that the user gave for an attribute of the source, or NO_MACHINE. */
static int32_t given_machine(const struct span_places *p, const struct span_source *s)
{
	for (const char *text = p->clocks->machine_of; text && *text; text += *text == ',') {
		const size_t len = strcspn(text, ",");
		const char *name = memrchr(text, '=', len);
		bool has_attribute = false;
		for (size_t k = 0; name && k < s->attributes && !has_attribute; k++)
			has_attribute = strlen(s->attribute[k]) == (size_t)(name - text) &&
			                memcmp(s->attribute[k], text, (size_t)(name - text)) == 0;
		for (uint32_t m = 0; m < p->catalog->machines && has_attribute; m++) {
			const char *machine = p->catalog->machine[m].name;
			if (strlen(machine) == (size_t)(text + len - name - 1) && memcmp(machine, name + 1, strlen(machine)) == 0)
				return (int32_t)m;
		}
		text += len;
	}
	return NO_MACHINE;
}

/* Finds a source's machine. *full: the name with a domain by which it was found; NULL: its name. */
static int32_t find_machine(const struct span_places *p, const struct span_source *s, const char **full)
{
	const int32_t given = given_machine(p, s);
	if (given != NO_MACHINE)
		return given;
	int32_t found = NO_MACHINE;
	enum name_match best = MATCH_NONE;
	for (size_t k = 0; k < SPAN_HOST_KEYS; k++) {
		for (uint32_t m = 0; s->host[k] && m < p->catalog->machines; m++) {
			const enum name_match match = match_machine(p, s->host[k], m);
			if (match == MATCH_NONE || match < best)
				continue;
			if (match == best && found != (int32_t)m)
				return NO_MACHINE;
			best = match;
			found = (int32_t)m;
			*full = match == MATCH_DOMAIN ? s->host[k] : NULL;
		}
	}
	return found;
}

static void find_machines(struct span_places *p)
{
	const char **domain = mem_new(p->catalog->machines + 1, sizeof *domain);  /* of each machine: first name with one */
	bool *ambiguous = mem_new(p->catalog->machines + 1, sizeof *ambiguous);
	for (size_t i = 0; i < p->spans->sources; i++) {
		const char *full = NULL;
		const int32_t m = p->machine[i] = find_machine(p, &p->spans->source[i], &full);
		if (m == NO_MACHINE || !full)
			continue;
		if (domain[m] && strcasecmp(domain[m], full) != 0)
			ambiguous[m] = true;
		domain[m] = full;
	}
	for (size_t i = 0; i < p->spans->sources; i++) {
		const char *full = NULL;
		if (p->machine[i] != NO_MACHINE && ambiguous[p->machine[i]] &&
		    find_machine(p, &p->spans->source[i], &full) != NO_MACHINE && full)
			p->machine[i] = NO_MACHINE;
	}
	free(domain);
	free(ambiguous);
}

int32_t span_machine(const struct span_places *p, const struct span *s)
{
	return p->machine[s->source];
}

/* ---- Threads ------------------------------------------------------------------------------------------------ */

/* Returns 1 if the attribute has a value within [t0, t1] that is_wanted() accepts, 0 or -1. */
static int has_value(const struct history *h, uint32_t attr, int64_t t0, int64_t t1,
                     bool (*is_wanted)(const struct catalog *catalog, int64_t value, int32_t pid),
                     const struct catalog *catalog, int32_t pid, struct error *err)
{
	struct history_cursor c;
	struct interval iv;
	int more;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, h, attr, max64(t0, history_begin(h)), min64(t1, history_end(h)), err))
		return -1;
	while ((more = history_range_next(&c, &iv, err)) > 0)
		if (is_wanted(catalog, iv.value, pid))
			return 1;
	return more;
}

static bool is_pid(const struct catalog *catalog, int64_t value, int32_t pid)
{
	(void)catalog;
	return value == pid;
}

static bool is_known(const struct catalog *catalog, int64_t value, int32_t pid)
{
	(void)catalog;
	(void)pid;
	return value != HISTORY_NULL;
}

/* Returns true for a state in which a thread may have executed, or was kept from it. */
static bool is_at_work(const struct catalog *catalog, int64_t value, int32_t pid)
{
	(void)pid;
	return value >= 0 && value < HISTORY_STATES && catalog->thread_state[value] != THREAD_BLOCKED;
}

enum membership { OTHER_PROCESS, MEMBER, UNKNOWN_PROCESS };

/* Returns an enum membership, or -1. */
static int find_membership(const struct span_places *p, const struct catalog_thread *t, int32_t pid, struct error *err)
{
	const struct history *h = p->catalog->h;
	if (t->status == HISTORY_NONE)
		return OTHER_PROCESS;
	if (t->tid == pid)
		return MEMBER;
	const int is_member = has_value(h, t->pid, history_begin(h), history_end(h), is_pid, p->catalog, pid, err);
	if (is_member)
		return is_member < 0 ? -1 : MEMBER;
	const int has_pid = has_value(h, t->pid, history_begin(h), history_end(h), is_known, p->catalog, pid, err);
	return has_pid < 0 ? -1 : has_pid ? OTHER_PROCESS : UNKNOWN_PROCESS;
}

static int load_process(const struct span_places *p, int32_t pid, const struct catalog_machine *m, struct span_process *out,
                        struct error *err)
{
	for (int wanted = MEMBER; wanted <= UNKNOWN_PROCESS; wanted++) {
		for (uint32_t i = m->thread; i < m->thread + m->threads; i++) {
			const int membership = find_membership(p, &p->catalog->thread[i], pid, err);
			if (membership < 0)
				return -1;
			if (membership == wanted)
				*ARRAY_PUSH(out->thread, out->threads, out->cap) = i;
		}
		if (wanted == MEMBER)
			out->members = out->threads;
	}
	return 0;
}

/* Returns a process's threads, valid until the next call; NULL with *err. */
static const struct span_process *find_threads(struct span_places *p, uint32_t machine, int32_t pid, struct error *err)
{
	uint64_t *index = map_put(&p->by_pid, (uint64_t)machine << 32 | (uint32_t)pid, NULL);
	if (*index == 0) {
		struct span_process process = { 0 };
		if (load_process(p, pid, &p->catalog->machine[machine], &process, err)) {
			free(process.thread);
			return NULL;
		}
		*ARRAY_PUSH(p->process, p->processes, p->processes_cap) = process;
		*index = p->processes;
	}
	return &p->process[*index - 1];
}

/* Returns 1 if the thread may have run within t +- error, 0 or -1. */
static int runs_at(const struct span_places *p, uint32_t thread, int64_t t, int64_t error, struct error *err)
{
	const uint32_t status = p->catalog->thread[thread].status;
	return has_value(p->catalog->h, status, t - error, t + error, is_at_work, p->catalog, 0, err);
}

/* Sets the place to the span's thread, if it is a member of the process that ran at both ends. Returns 1, 0, -1. */
static int find_own_thread(const struct span_places *p, const struct span *s, const struct span_process *process,
                           const int64_t end[2], int64_t error, struct span_place *out, struct error *err)
{
	for (size_t i = 0; i < process->members; i++) {
		const uint32_t thread = process->thread[i];
		int runs = p->catalog->thread[thread].tid == s->tid;
		for (size_t k = 0; k < 2 && runs > 0; k++)
			runs = runs_at(p, thread, end[k], error, err);
		if (runs < 0)
			return -1;
		if (!runs)
			continue;
		*ARRAY_PUSH(out->thread, out->threads, out->cap) = thread;
		out->members = 1;
		out->is_known_thread = true;
		return 1;
	}
	return 0;
}

/* Sets the place to the process's threads, if a member ran at each end. A thread of an unknown process counts if it
 * was at work within the span. */
static int find_process(const struct span_places *p, const struct span_process *process, const int64_t end[2],
                        int64_t error, struct span_place *out, struct error *err)
{
	bool runs[2] = { false, false };
	for (size_t i = 0; i < process->threads; i++) {
		const uint32_t thread = process->thread[i];
		const bool is_member = i < process->members;
		const int counts = has_value(p->catalog->h, p->catalog->thread[thread].status, end[0] - error, end[1] + error,
		                             is_member ? is_known : is_at_work, p->catalog, 0, err);
		if (counts < 0)
			return -1;
		if (counts)
			*ARRAY_PUSH(out->thread, out->threads, out->cap) = thread;
		out->members += counts && is_member;
		for (size_t k = 0; k < 2 && counts && is_member; k++) {
			const int at = runs[k] ? 1 : runs_at(p, thread, end[k], error, err);
			if (at < 0)
				return -1;
			runs[k] = at;
		}
	}
	if (!runs[0] || !runs[1])
		out->threads = out->members = 0;
	return 0;
}

int span_place_find(struct span_places *p, size_t i, int64_t start, int64_t end, int64_t error, struct span_place *out,
                    struct error *err)
{
	const struct span *s = &p->spans->span[i];
	const struct span_source *source = &p->spans->source[s->source];
	const int32_t machine = p->machine[s->source];
	const struct catalog_machine *m = &p->catalog->machine[machine];
	const int64_t ends[2] = { start, end };
	*out = (struct span_place){ .machine = (uint32_t)machine, .thread = out->thread, .cap = out->cap };
	if (source->pid < 0 || source->in_container || m->kind == MACHINE_CONTAINER)
		return 0;
	const struct span_process *process = find_threads(p, (uint32_t)machine, source->pid, err);
	if (!process)
		return -1;
	const int own = find_own_thread(p, s, process, ends, error + 1, out, err);
	if (own != 0) {
		out->interleaved = own > 0 && p->interleaved[i];
		return own < 0 ? -1 : 0;
	}
	return find_process(p, process, ends, error + 1, out, err);
}

/* ---- Threads that work in turns -------------------------------------------------------------------------------- */

struct thread_span { uint32_t machine; int32_t pid, tid; size_t span; int64_t start, end; };

ORDER_BY(by_thread, struct thread_span, RISING(machine) RISING(pid) RISING(tid) RISING(start) FALLING(end))

static bool is_same_thread(const struct thread_span *a, const struct thread_span *b)
{
	return a->machine == b->machine && a->pid == b->pid && a->tid == b->tid;
}

/* Returns true if span b, which begins within a, ends within a and is its child. */
static bool is_nested(const struct span_places *p, const struct thread_span *a, const struct thread_span *b)
{
	const struct span *outer = &p->spans->span[a->span], *inner = &p->spans->span[b->span];
	return b->end <= a->end && strcmp(outer->trace, inner->trace) == 0 && strcmp(outer->id, inner->parent) == 0;
}

/* Marks the spans of threads that work in turns: groups of overlapping spans in which one is not the child of the
 * innermost span around it. */
static void find_interleaved(struct span_places *p)
{
	struct thread_span *list = mem_new(p->spans->len + 1, sizeof *list);
	size_t n = 0, *open = mem_new(p->spans->len + 1, sizeof *open);  /* spans around the current one, outermost first */
	for (size_t i = 0; i < p->spans->len; i++) {
		const struct span *s = &p->spans->span[i];
		const struct span_source *source = &p->spans->source[s->source];
		if (s->tid >= 0 && source->pid >= 0 && p->machine[s->source] != NO_MACHINE)
			list[n++] = (struct thread_span){ (uint32_t)p->machine[s->source], source->pid, s->tid, i, s->start,
			                                  s->end };
	}
	qsort(list, n, sizeof *list, by_thread);
	for (size_t i = 0, end; i < n; i = end) {
		int64_t last = list[i].end;
		size_t depth = 0;
		bool mixed = false;
		open[depth++] = i;
		for (end = i + 1; end < n && is_same_thread(&list[i], &list[end]) && list[end].start < last; end++) {
			while (depth && list[open[depth - 1]].end <= list[end].start)
				depth--;
			mixed = mixed || (depth && !is_nested(p, &list[open[depth - 1]], &list[end]));
			open[depth++] = end;
			last = max64(last, list[end].end);
		}
		for (size_t k = i; mixed && k < end; k++)
			p->interleaved[list[k].span] = true;
	}
	free(list);
	free(open);
}

/* ---- All places --------------------------------------------------------------------------------------------- */

struct span_places *span_places_open(const struct catalog *catalog, const struct spans *spans,
                                     const struct span_clocks *clocks)
{
	struct span_places *p = mem_new(1, sizeof *p);
	*p = (struct span_places){ .catalog = catalog, .spans = spans, .clocks = clocks, .by_pid = MAP_INIT,
	                           .machine = mem_new(spans->sources + 1, sizeof *p->machine),
	                           .interleaved = mem_new(spans->len + 1, sizeof *p->interleaved) };
	find_machines(p);
	find_interleaved(p);
	return p;
}

void span_places_close(struct span_places *p)
{
	for (size_t i = 0; i < p->processes; i++)
		free(p->process[i].thread);
	map_release(&p->by_pid);
	free(p->process);
	free(p->machine);
	free(p->interleaved);
	free(p);
}
