/* A history -> another one, of a part of its time and of its machines.
 *
 * What of an attribute lies within the window is written as it was, whole, with what answers look up around it
 * (cut_context.h); the history says that it is about the window.  What has no value there is left out, and so are threads
 * that did not live.  Aliases take the place of names by what the schema says an attribute is: an attribute or a path that
 * the schema does not know is left out then, since nobody can say what it tells.
 * Cost: one pass over the intervals of the window.  Memory: the names, and what a builder takes. */
#include "index/index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/schema.h"
#include "base/states.h"
#include "base/suggest.h"
#include "base/text.h"
#include "index/name_alias.h"
#include "index/cut_context.h"
#include "index/provenance.h"

#define BATCH 256      /* intervals that are read at once */
#define PATH_MOST 4096 /* bytes */
#define NAME_MOST 1024 /* bytes of a name, escaped */

/* What a text is, for aliases. */
enum says { SAYS_NAME, SAYS_MACHINE, SAYS_HANDLER, SAYS_NOTHING };

struct copied_set {
	char *state[HISTORY_STATES];
	unsigned n, id;
};

struct cut {
	const struct history *h;
	struct history_builder *b;
	const struct cut_options *o;
	struct alias_key key;
	struct map text;           /* enum says << 32 | id of a string there -> id + 1 here */
	struct copied_set *set;
	size_t sets, set_cap;
	struct moments moments;    /* around the window */
	int64_t first, last;       /* ns of what was told */
	uint32_t done, count;      /* attributes */
	char part[PATH_MOST];      /* of a path, while it is put together */
	struct error *err;
};

/* ---- Names */

static const char *alias_name(const struct cut *c, enum says says, const char *raw, char buf[ALIAS_TEXT])
{
	char text[NAME_MOST];
	if (!c->o->aliases || says == SAYS_NOTHING || *raw == '\0' || (says == SAYS_MACHINE && strcmp(raw, "host") == 0))
		return raw;
	text_escape(text, sizeof text, raw);  /* as reports and the provenance have it */
	return says == SAYS_HANDLER ? alias_of_handler(&c->key, text, buf) : alias_of(&c->key, text, buf);
}

static enum says says_of(const char *attribute)
{
	static const struct { const struct schema_attr *attr; enum says says; } known[] = {
		{ &machine_schema[MACHINE_PARENT], SAYS_MACHINE }, { &machine_schema[MACHINE_ISA], SAYS_NOTHING },
		{ &cpu_schema[CPU_INTERRUPT], SAYS_HANDLER }, { &cpu_schema[CPU_EXIT], SAYS_NOTHING },
		{ &thread_schema[THREAD_WOKEN_IN], SAYS_HANDLER }, { &thread_schema[THREAD_WOKEN_BY], SAYS_MACHINE },
		{ &thread_schema[THREAD_VM], SAYS_MACHINE }, { &thread_schema[THREAD_LOCK], SAYS_NOTHING },
		{ &thread_schema[THREAD_GROUPS], SAYS_NOTHING },
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].attr->name, attribute) == 0)
			return known[i].says;
	return SAYS_NAME;
}

static int64_t copy_text(struct cut *c, enum says says, int64_t id)
{
	bool is_new;
	uint64_t *known = map_put(&c->text, (uint64_t)says << 32 | (uint64_t)id, &is_new);
	if (!is_new)
		return (int64_t)*known - 1;
	char buf[ALIAS_TEXT];
	const char *raw = history_string(c->h, id);
	int64_t made = raw ? history_text(c->b, alias_name(c, says, raw, buf), c->err) : -1;
	if (!raw)
		error_set(c->err, STATUS_INPUT, NULL, "%s: damaged: a name is missing", history_file(c->h));
	*known = (uint64_t)(made + 1);
	return made;
}

/* The value as the new history has it; false: *err. */
static bool copy_value(struct cut *c, int type, enum says says, int64_t *value)
{
	if (*value == HISTORY_NULL || type == HISTORY_STATE || type == HISTORY_INT)
		return true;
	int64_t old = type == HISTORY_REF ? history_ref_text(*value) : *value, id = copy_text(c, says, old);
	*value = type == HISTORY_REF ? history_ref(id, history_ref_number(*value)) : id;
	return id >= 0;
}

/* The state set of an attribute, as a set of the new history. */
static unsigned copy_set(struct cut *c, uint32_t attr)
{
	bool owners = strcmp(history_name(c->h, attr), cpu_schema[CPU_OWNER].name) == 0;
	struct copied_set one = { .n = history_state_count(c->h, attr) };
	for (unsigned i = 0; i < one.n; i++) {
		char buf[ALIAS_TEXT];
		const char *name = history_state_name(c->h, attr, i);
		bool fixed = !owners || (i < PCPU_VM && strcmp(name ? name : "", pcpu_owner_name[i]) == 0);
		one.state[i] = mem_dup(alias_name(c, fixed ? SAYS_NOTHING : SAYS_NAME, name ? name : "", buf));
	}
	size_t s = 0;
	for (bool same = false; s < c->sets; s++) {
		same = c->set[s].n == one.n;
		for (unsigned i = 0; same && i < one.n; i++)
			same = strcmp(c->set[s].state[i], one.state[i]) == 0;
		if (same)
			break;
	}
	bool is_new = s == c->sets;
	if (is_new) {
		one.id = history_state_set(c->b, history_name(c->h, attr), (const char *const *)one.state, one.n);
		*ARRAY_PUSH(c->set, c->sets, c->set_cap) = one;
	}
	for (unsigned i = 0; !is_new && i < one.n; i++)
		free(one.state[i]);
	return c->set[s].id;
}

/* What a component of a path is, by those above it; PART_STRANGE: the schema has no such thing. */
enum path_part {
	PART_ROOT, PART_HOST, PART_MACHINES, PART_REQUESTERS, PART_MACHINE, PART_REQUESTER, PART_REQUEST, PART_CPUS,
	PART_THREADS, PART_CPU, PART_THREAD, PART_ATTRIBUTE, PART_STRANGE
};

/* ---- One attribute */

/* An attribute while it is copied. */
struct copied {
	uint32_t from, to;  /* attributes; HISTORY_NONE: not declared, for want of a value */
	const char *path;
	int type;
	enum says says;
	int64_t until;      /* told so far, this ns included */
};

/* Tells the interval, whole, but for what was told before; what lies between is not known. */
static int copy_interval(struct cut *c, struct copied *a, const struct interval *iv)
{
	int64_t value = iv->value, start = iv->start > a->until ? iv->start : a->until + 1;
	if (iv->end <= a->until || (a->to == HISTORY_NONE && value == HISTORY_NULL))
		return 0;
	if (a->to == HISTORY_NONE)
		a->to = history_attribute(c->b, a->path, (enum history_type)a->type,
		                          a->type == HISTORY_STATE ? copy_set(c, a->from) : 0, c->err);
	if (a->to == HISTORY_NONE || (a->until > INT64_MIN && start > a->until + 1 &&
	                              history_set(c->b, a->until + 1, a->to, HISTORY_NULL, c->err)))
		return -1;
	if (!copy_value(c, a->type, a->says, &value) || history_set(c->b, start, a->to, value, c->err))
		return -1;
	a->until = iv->end;
	c->first = start < c->first ? start : c->first;
	c->last = iv->end > c->last ? iv->end : c->last;
	return 0;
}

/* Copies what of [from, to] there is, cut to [first, last]. */
static int copy_range(struct cut *c, struct copied *a, int64_t from, int64_t to, int64_t first, int64_t last)
{
	struct history_cursor at;
	struct interval iv[BATCH];
	int n;
	if (history_range(&at, c->h, a->from, from, to, c->err))
		return -1;
	while ((n = history_range_read(&at, iv, BATCH, c->err)) > 0)
		for (int i = 0; i < n; i++) {
			iv[i].start = iv[i].start > first ? iv[i].start : first;
			iv[i].end = iv[i].end < last ? iv[i].end : last;
			if (copy_interval(c, a, &iv[i]))
				return -1;
		}
	return n;
}

/* Has the attribute a value within the window?  1, 0, -1. */
static int has_value(const struct cut *c, uint32_t attr)
{
	struct interval iv = { .end = c->o->from - 1, .value = HISTORY_NULL };
	while (iv.value == HISTORY_NULL && iv.end < c->o->to)
		if (history_stab(c->h, attr, iv.end + 1, &iv, c->err))
			return -1;
	return iv.value != HISTORY_NULL;
}

/* That the tracer told of locks at all is known by this attribute being there. */
static int declare_lock(struct cut *c, uint32_t attr, const char *path)
{
	bool lock = strcmp(history_name(c->h, attr), thread_schema[THREAD_LOCK].name) == 0;
	if (!lock || history_type(c->h, attr) != HISTORY_STRING)
		return 0;
	return history_attribute(c->b, path, HISTORY_STRING, 0, c->err) == HISTORY_NONE ? -1 : 0;
}

/* The window, and the moments around it.  Of requests the window alone: those that go on beyond it are cut off, since what
 * was going on there is not told.  Names are told of all the time, since the longest is the thread's. */
static int copy_intervals(struct cut *c, uint32_t attr, enum path_part node, const char *path)
{
	const int64_t from = c->o->from, to = c->o->to, first = history_first(c->h), last = history_last(c->h);
	const char *of = history_name(c->h, attr);
	struct copied a = { attr, HISTORY_NONE, path, history_type(c->h, attr), says_of(of), INT64_MIN };
	const bool name = node == PART_THREAD && strcmp(of, thread_schema[THREAD_NAME].name) == 0;
	size_t n, i, at = moments_of(&c->moments, history_parent(c->h, attr), &n);
	int has = has_value(c, attr), rc = 0;
	if (has < 0 || (!has && n == 0))
		return has;
	if (!has && node == PART_THREAD && declare_lock(c, attr, path))
		return -1;
	if (node == PART_REQUEST)
		return copy_range(c, &a, from, to, from, to);
	if (name && has)
		return copy_range(c, &a, first, last, first, last);
	for (i = at; i < at + n && c->moments.at[i].t < from && rc == 0; i++)
		rc = copy_range(c, &a, c->moments.at[i].t, c->moments.at[i].t, first, last);
	rc = rc ? rc : copy_range(c, &a, from, to, first, last);
	for (; i < at + n && rc == 0; i++)
		rc = copy_range(c, &a, c->moments.at[i].t, c->moments.at[i].t, first, last);
	if (rc == 0 && a.to != HISTORY_NONE && a.until < last) {
		c->last = a.until + 1 > c->last ? a.until + 1 : c->last;
		rc = history_set(c->b, a.until + 1, a.to, HISTORY_NULL, c->err);
	}
	return rc;
}

/* ---- The tree */

static bool is_schema(const struct schema_attr *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].name, name) == 0)
			return true;
	return false;
}
#define IS_SCHEMA(list, name) is_schema(list, sizeof (list) / sizeof *(list), name)

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

static enum path_part part_of(enum path_part above, const char *name)
{
	switch (above) {
	case PART_ROOT:
		return strcmp(name, SCHEMA_HOST) == 0 ? PART_HOST : strcmp(name, SCHEMA_REQUESTS) == 0 ? PART_REQUESTERS :
		       strcmp(name, SCHEMA_VMS) == 0 || strcmp(name, SCHEMA_CONTAINERS) == 0 ? PART_MACHINES : PART_STRANGE;
	case PART_MACHINES:
		return PART_MACHINE;
	case PART_REQUESTERS:
		return PART_REQUESTER;
	case PART_REQUESTER:
		return PART_REQUEST;
	case PART_HOST:
	case PART_MACHINE:
		return strcmp(name, SCHEMA_CPUS) == 0 ? PART_CPUS : strcmp(name, SCHEMA_THREADS) == 0 ? PART_THREADS :
		       IS_SCHEMA(machine_schema, name) ? PART_ATTRIBUTE : PART_STRANGE;
	case PART_CPUS:
		return strncmp(name, SCHEMA_CPU, strlen(SCHEMA_CPU)) == 0 && is_number(name + strlen(SCHEMA_CPU)) ? PART_CPU
		       : PART_STRANGE;
	case PART_THREADS:
		return is_number(name) ? PART_THREAD : PART_STRANGE;
	case PART_CPU:
		return IS_SCHEMA(cpu_schema, name) ? PART_ATTRIBUTE : PART_STRANGE;
	case PART_THREAD:
		return IS_SCHEMA(thread_schema, name) ? PART_ATTRIBUTE : PART_STRANGE;
	case PART_REQUEST:
		return IS_SCHEMA(request_schema, name) ? PART_ATTRIBUTE : PART_STRANGE;
	default:
		return PART_STRANGE;
	}
}

static bool is_wanted(const struct cut *c, const char *machine)
{
	for (size_t i = 0; i < c->o->machines; i++)
		if (strcmp(c->o->machine[i], machine) == 0)
			return true;
	return c->o->machines == 0 || strcmp(machine, "host") == 0;
}

/* Of a machine that was not asked for, what the host knows of it stays: it may be a thief. */
static bool is_inside(enum path_part part, const char *name)
{
	return part == PART_THREADS || (part == PART_ATTRIBUTE && (strcmp(name, cpu_schema[CPU_CURRENT].name) == 0 ||
	                                                           strcmp(name, cpu_schema[CPU_INTERRUPT].name) == 0));
}

static int copy_node(struct cut *c, uint32_t node, enum path_part part, bool inside, const char *above)
{
	for (uint32_t a = history_child(c->h, node, HISTORY_NONE); a != HISTORY_NONE; a = history_child(c->h, node, a)) {
		const char *name = history_name(c->h, a);
		enum path_part here = part_of(part, name);
		bool named = here == PART_MACHINE || here == PART_REQUESTER, wanted = inside && (!named || is_wanted(c, name));
		if ((here == PART_STRANGE && c->o->aliases) || (here == PART_REQUESTER && !wanted) ||
		    (!wanted && is_inside(here, name)))
			continue;
		char buf[ALIAS_TEXT], *path;
		enum says says = named ? SAYS_MACHINE : here == PART_REQUEST ? SAYS_NAME : SAYS_NOTHING;
		history_path(c->part, sizeof c->part, alias_name(c, says, name, buf), NULL);
		path = mem_printf("%s%s", above, c->part);
		int rc = history_type(c->h, a) < 0 ? copy_node(c, a, here, wanted, path) : copy_intervals(c, a, part, path);
		free(path);
		if (rc)
			return -1;
		if (++c->done % 1024 == 0 && c->o->progress.tick &&
		    c->o->progress.tick(c->o->progress.arg, "cutting", c->done, c->count))
			return error_set(c->err, STATUS_CANCELLED, NULL, "cancelled");
	}
	return 0;
}

/* Is there a machine of that name?  The names that there are, for a suggestion. */
static bool has_machine(const struct cut *c, const char *machine, struct suggestion *near)
{
	static const char *const root[] = { "/" SCHEMA_VMS, "/" SCHEMA_CONTAINERS };
	bool found = strcmp(machine, "host") == 0;
	suggest(near, "host");
	for (size_t r = 0; r < 2 && !found; r++) {
		const uint32_t node = history_find(c->h, root[r]);
		for (uint32_t m = HISTORY_NONE; node != HISTORY_NONE && (m = history_child(c->h, node, m)) != HISTORY_NONE;) {
			found = found || strcmp(history_name(c->h, m), machine) == 0;
			suggest(near, history_name(c->h, m));
		}
	}
	return found;
}

/* Machines that are asked for must be there. */
static int check_machines(const struct cut *c)
{
	for (size_t i = 0; i < c->o->machines; i++) {
		const char *machine = c->o->machine[i];
		struct suggestion near = SUGGESTION(machine);
		if (has_machine(c, machine, &near))
			continue;
		char text[NAME_MOST], right[NAME_MOST], mend[NAME_MOST + 20] = "stealscope info lists them";
		if (near.nearest)
			snprintf(mend, sizeof mend, "did you mean %s?", text_escape(right, sizeof right, near.nearest));
		return error_set(c->err, STATUS_USAGE, mend, "--machines: no such machine: '%s'",
		                 text_escape(text, sizeof text, machine));
	}
	return 0;
}

/* ---- All of it */

static const char *provenance_name(const void *arg, const char *text, char *buf)
{
	const struct cut *c = arg;
	return c->o->aliases && *text && strcmp(text, "host") != 0 ? alias_of(&c->key, text, buf) : text;
}

static bool provenance_wanted(const void *arg, const char *machine)
{
	char text[NAME_MOST];
	const struct cut *c = arg;
	bool found = c->o->machines == 0;
	for (size_t i = 0; i < c->o->machines; i++)
		found |= strcmp(text_escape(text, sizeof text, c->o->machine[i]), machine) == 0;
	return found;
}

static int copy_all(struct cut *c)
{
	const struct provenance_cut how = { c->o->from, c->o->to, c->o->aliases, provenance_name, provenance_wanted, c };
	c->count = history_attribute_count(c->h);
	if (moments_find(&c->moments, c->h, c->o->from, c->o->to, c->err) ||
	    copy_node(c, history_find(c->h, "/"), PART_ROOT, true, ""))
		return -1;
	if ((c->first < c->o->from || c->last > c->o->to) && history_set_window(c->b, c->o->from, c->o->to))
		return error_set(c->err, STATUS_SYSTEM, NULL, "out of memory");
	return provenance_copy(c->h, c->b, &how, c->err);
}

int cut_history(const struct history *h, const char *path, const struct cut_options *o, struct error *err)
{
	struct cut_options window = *o;
	window.from = o->from > history_begin(h) ? o->from : history_begin(h);
	window.to = o->to < history_end(h) ? o->to : history_end(h);
	struct cut c = { .h = h, .o = &window, .first = window.from, .last = window.to, .err = err };
	if ((o->aliases && alias_key(&c.key, o->key, err)) || check_machines(&c))
		return -1;
	c.b = history_create(path, NULL, err);
	if (!c.b)
		return -1;
	int rc = copy_all(&c) || history_damage(h, err) ? -1 : 0;
	if (rc)
		history_abort(c.b);
	else
		rc = history_finish(c.b, c.first, c.last, err);
	for (size_t s = 0; s < c.sets; s++)
		for (unsigned i = 0; i < c.set[s].n; i++)
			free(c.set[s].state[i]);
	free(c.set);
	moments_release(&c.moments);
	map_release(&c.text);
	return rc;
}
