/* Cut: copies a window and some machines of a history into another history.
 *
 * Intervals of an attribute that overlap the window are copied without shortening, together with the intervals outside
 * the window that answers depend on (recorded_reads.h). The window of the new history is the cut; its span is that of the
 * whole history. Threads are omitted that did not exist in the window and that no answer needs. Aliases replace names
 * according to the schema; attributes and paths that are not in the schema are then omitted, because they may contain
 * names.
 *
 * Cost: the questions of recorded_reads.h, and one pass over the window's intervals. Memory: the names, and a history
 * builder. */
#include "base/base.h"
#include "index/index.h"

#include "base/schema.h"
#include "base/states.h"
#include "base/suggest.h"
#include "index/name_alias.h"
#include "index/provenance.h"
#include "index/recorded_reads.h"
#include "query/query.h"

#define READ_BATCH 256      /* intervals read in one call */
#define PATH_SIZE 4096 /* bytes */
#define NAME_SIZE 1024 /* maximum size of an escaped name, bytes */

/* Kind of a text; determines its alias. */
enum text_kind { TEXT_NAME, TEXT_MACHINE, TEXT_HANDLER, TEXT_PUBLIC };

struct state_set_copy {
	char *state[HISTORY_STATES];
	unsigned n, id;
};

struct cut {
	const struct history *h;
	struct history_builder *b;
	const struct cut_options *o;
	struct alias_key key;
	struct map text;           /* enum text_kind << 32 | string id in h -> string id in b, plus 1 */
	struct state_set_copy *set;
	size_t sets, set_cap;
	struct recorded_reads reads;   /* parts outside the window that are also copied */
	uint32_t attrs_done, attrs_total;      /* attribute count, for progress */
	char component[PATH_SIZE];      /* buffer for one component of a path */
	struct error *err;
};

/* ---- Names */

static const char *alias_name(const struct cut *c, enum text_kind kind, const char *raw, char buf[ALIAS_SIZE])
{
	char text[NAME_SIZE];
	if (!c->o->aliases || kind == TEXT_PUBLIC || *raw == '\0' || (kind == TEXT_MACHINE && strcmp(raw, "host") == 0))
		return raw;
	text_escape(text, sizeof text, raw);  /* aliases are computed from escaped names everywhere */
	return kind == TEXT_HANDLER ? alias_make_handler(&c->key, text, buf) : alias_make(&c->key, text, buf);
}

static enum text_kind text_kind_of(const char *attribute)
{
	static const struct { const struct schema_attr *attr; enum text_kind kind; } known[] = {
		{ &machine_schema[MACHINE_PARENT], TEXT_MACHINE }, { &machine_schema[MACHINE_ISA], TEXT_PUBLIC },
		{ &machine_schema[MACHINE_SMT], TEXT_PUBLIC },
		{ &cpu_schema[CPU_INTERRUPT], TEXT_HANDLER }, { &cpu_schema[CPU_EXIT], TEXT_PUBLIC },
		{ &thread_schema[THREAD_WOKEN_IN], TEXT_HANDLER }, { &thread_schema[THREAD_WOKEN_BY], TEXT_MACHINE },
		{ &thread_schema[THREAD_VM], TEXT_MACHINE }, { &thread_schema[THREAD_LOCK], TEXT_PUBLIC },
		{ &thread_schema[THREAD_GROUPS], TEXT_PUBLIC },
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].attr->name, attribute) == 0)
			return known[i].kind;
	return TEXT_NAME;
}

static int64_t copy_text(struct cut *c, enum text_kind kind, int64_t id)
{
	bool is_new;
	uint64_t *known = map_put(&c->text, (uint64_t)kind << 32 | (uint64_t)id, &is_new);
	if (!is_new)
		return (int64_t)*known - 1;
	char buf[ALIAS_SIZE];
	const char *raw = history_string(c->h, id);
	int64_t new_id = raw ? history_text(c->b, alias_name(c, kind, raw, buf), c->err) : -1;
	if (!raw)
		error_set(c->err, STATUS_INPUT, NULL, "%s: the history is damaged: a name is missing", history_file(c->h));
	*known = (uint64_t)(new_id + 1);
	return new_id;
}

/* Converts a value to the new history: replaces the string ids. Returns false, with *err set, on failure. */
static bool copy_value(struct cut *c, int type, enum text_kind kind, int64_t *value)
{
	if (*value == HISTORY_NULL || type == HISTORY_STATE || type == HISTORY_INT)
		return true;
	int64_t old = type == HISTORY_REF ? history_ref_text(*value) : *value, id = copy_text(c, kind, old);
	*value = type == HISTORY_REF ? history_ref(id, history_ref_number(*value)) : id;
	return id >= 0;
}

/* Returns the id in the new history of the attribute's set of states. Equal sets get the same id. */
static unsigned copy_set(struct cut *c, uint32_t attr)
{
	bool owners = strcmp(history_name(c->h, attr), cpu_schema[CPU_OWNER].name) == 0;
	struct state_set_copy one = { .n = history_state_count(c->h, attr) };
	for (unsigned i = 0; i < one.n; i++) {
		char buf[ALIAS_SIZE];
		const char *name = history_state_name(c->h, attr, i);
		bool fixed = !owners || (i < PCPU_VM && strcmp(name ? name : "", pcpu_owner_name[i]) == 0);
		one.state[i] = mem_dup(alias_name(c, fixed ? TEXT_PUBLIC : TEXT_NAME, name ? name : "", buf));
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

/* Kind of a path component, derived from the kind of the component above it; PART_UNKNOWN: not in the schema. */
enum path_part {
	PART_ROOT, PART_HOST, PART_MACHINES, PART_REQUESTERS, PART_MACHINE, PART_REQUESTER, PART_REQUEST, PART_CPUS,
	PART_THREADS, PART_CPU, PART_THREAD, PART_ATTRIBUTE, PART_UNKNOWN
};

/* ---- One attribute */

/* Progress of copying one attribute. */
struct attr_copy {
	uint32_t from, to;  /* attribute in h and in b; to = HISTORY_NONE: not declared yet, because it had no value until
	                     * now */
	const char *path;
	int type;
	enum text_kind kind;
	int64_t written_until;  /* last time written, ns */
};

/* Declares the attribute unless it is declared. Returns 0 or -1. */
static int declare_attribute(struct cut *c, struct attr_copy *a)
{
	if (a->to == HISTORY_NONE)
		a->to = history_attribute(c->b, a->path, (enum history_type)a->type,
		                          a->type == HISTORY_STATE ? copy_set(c, a->from) : 0, c->err);
	return a->to == HISTORY_NONE ? -1 : 0;
}

/* Writes the part of an interval that is not written yet. If a gap to the previous interval remains, it becomes null. */
static int copy_interval(struct cut *c, struct attr_copy *a, const struct interval *iv)
{
	int64_t value = iv->value, start = iv->start > a->written_until ? iv->start : a->written_until + 1;
	if (iv->end <= a->written_until || (a->to == HISTORY_NONE && value == HISTORY_NULL))
		return 0;
	if (declare_attribute(c, a) || (a->written_until > INT64_MIN && start > a->written_until + 1 &&
	                              history_set(c->b, a->written_until + 1, a->to, HISTORY_NULL, c->err)))
		return -1;
	if (!copy_value(c, a->type, a->kind, &value) || history_set(c->b, start, a->to, value, c->err))
		return -1;
	a->written_until = iv->end;
	return 0;
}

/* Copies the intervals that overlap [from, to], shortened to [first, last]. */
static int copy_range(struct cut *c, struct attr_copy *a, int64_t from, int64_t to, int64_t first, int64_t last)
{
	struct history_cursor at;
	struct interval iv[READ_BATCH];
	int n;
	if (history_range(&at, c->h, a->from, from, to, c->err))
		return -1;
	while ((n = history_range_read(&at, iv, READ_BATCH, c->err)) > 0)
		for (int i = 0; i < n; i++) {
			iv[i].start = iv[i].start > first ? iv[i].start : first;
			iv[i].end = iv[i].end < last ? iv[i].end : last;
			if (copy_interval(c, a, &iv[i]))
				return -1;
		}
	return n;
}

/* Returns 1 if the attribute has a value within the window, 0 if not, -1 on failure. */
static int has_value(const struct cut *c, uint32_t attr)
{
	struct interval iv = { .end = c->o->from - 1, .value = HISTORY_NULL };
	while (iv.value == HISTORY_NULL && iv.end < c->o->to)
		if (history_stab(c->h, attr, iv.end + 1, &iv, c->err))
			return -1;
	return iv.value != HISTORY_NULL;
}

/* Copies a part that was read. If it begins or ends with null, copies the adjacent interval too: then null begins and
 * ends in the cut at the same times. */
static int copy_read(struct cut *c, struct attr_copy *a, const struct recorded_read *part)
{
	const int64_t first = history_first(c->h), last = history_last(c->h);
	struct interval head, tail;
	if (history_stab(c->h, a->from, part->start, &head, c->err) || history_stab(c->h, a->from, part->end, &tail, c->err))
		return -1;
	const int64_t from = head.value == HISTORY_NULL && head.start > first ? head.start - 1 : part->start;
	const int64_t to = tail.value == HISTORY_NULL && tail.end < last ? tail.end + 1 : part->end;
	return copy_range(c, a, from, to, first, last);
}

/* Returns 1 if the cut contains all attributes of this node: a machine, a CPU, a thread that exists in the window or of
 * which a part was read. Returns 0 if not, -1 on failure. */
static int has_node(const struct cut *c, uint32_t node, enum path_part part)
{
	size_t n;
	uint32_t first = history_child(c->h, node, HISTORY_NONE), last = first;
	if (part != PART_THREAD)
		return part == PART_HOST || part == PART_MACHINE || part == PART_CPU;
	for (uint32_t a = first; a != HISTORY_NONE; a = history_child(c->h, node, a))
		last = a;
	(void)recorded_reads_find(&c->reads, first, last, &n);
	const uint32_t status = history_child_named(c->h, node, thread_schema[THREAD_STATUS].name);
	return n ? 1 : status == HISTORY_NONE || history_type(c->h, status) < 0 ? 0 : has_value(c, status);
}

/* Copies the window's intervals, and the parts that were read. Requests are shortened to the window, because the
 * activity outside is missing. Names are copied for the whole time, because the longest name is the thread's name.
 * Attributes without values are declared, because their existence means that their events were traced. */
static int copy_intervals(struct cut *c, uint32_t attr, enum path_part node, const char *path)
{
	const int64_t from = c->o->from, to = c->o->to, first = history_first(c->h), last = history_last(c->h);
	const char *of = history_name(c->h, attr);
	struct attr_copy a = { attr, HISTORY_NONE, path, history_type(c->h, attr), text_kind_of(of), INT64_MIN };
	size_t n, i = recorded_reads_find(&c->reads, attr, attr, &n);
	const size_t end = i + n;
	int declared = has_node(c, history_parent(c->h, attr), node), has = has_value(c, attr), rc = 0;
	if (declared < 0 || has < 0 || (!has && !declared))
		return declared < 0 ? -1 : has;
	if (node == PART_REQUEST)
		return copy_range(c, &a, from, to, from, to);
	if (declared && declare_attribute(c, &a))
		return -1;
	if (node == PART_THREAD && strcmp(of, thread_schema[THREAD_NAME].name) == 0)
		return copy_range(c, &a, first, last, first, last);
	for (; i < end && c->reads.part[i].start < from && rc == 0; i++)
		rc = copy_read(c, &a, &c->reads.part[i]);
	rc = rc ? rc : copy_range(c, &a, from, to, first, last);
	for (; i < end && rc == 0; i++)
		rc = copy_read(c, &a, &c->reads.part[i]);
	if (rc == 0 && a.written_until > INT64_MIN && a.written_until < last)
		rc = history_set(c->b, a.written_until + 1, a.to, HISTORY_NULL, c->err);
	return rc;
}

/* ---- Attribute tree */

static bool in_schema(const struct schema_attr *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].name, name) == 0)
			return true;
	return false;
}
#define IN_SCHEMA(list, name) in_schema(list, sizeof (list) / sizeof *(list), name)

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

static enum path_part classify_part(enum path_part above, const char *name)
{
	switch (above) {
	case PART_ROOT:
		return strcmp(name, SCHEMA_HOST) == 0 ? PART_HOST : strcmp(name, SCHEMA_REQUESTS) == 0 ? PART_REQUESTERS :
		       strcmp(name, SCHEMA_VMS) == 0 || strcmp(name, SCHEMA_CONTAINERS) == 0 ? PART_MACHINES : PART_UNKNOWN;
	case PART_MACHINES:
		return PART_MACHINE;
	case PART_REQUESTERS:
		return PART_REQUESTER;
	case PART_REQUESTER:
		return PART_REQUEST;
	case PART_HOST:
	case PART_MACHINE:
		return strcmp(name, SCHEMA_CPUS) == 0 ? PART_CPUS : strcmp(name, SCHEMA_THREADS) == 0 ? PART_THREADS :
		       IN_SCHEMA(machine_schema, name) ? PART_ATTRIBUTE : PART_UNKNOWN;
	case PART_CPUS:
		return strncmp(name, SCHEMA_CPU, strlen(SCHEMA_CPU)) == 0 && is_number(name + strlen(SCHEMA_CPU)) ? PART_CPU
		       : PART_UNKNOWN;
	case PART_THREADS:
		return is_number(name) ? PART_THREAD : PART_UNKNOWN;
	case PART_CPU:
		return IN_SCHEMA(cpu_schema, name) ? PART_ATTRIBUTE : PART_UNKNOWN;
	case PART_THREAD:
		return IN_SCHEMA(thread_schema, name) ? PART_ATTRIBUTE : PART_UNKNOWN;
	case PART_REQUEST:
		return IN_SCHEMA(request_schema, name) ? PART_ATTRIBUTE : PART_UNKNOWN;
	default:
		return PART_UNKNOWN;
	}
}

static bool is_selected(const struct cut *c, const char *machine)
{
	for (size_t i = 0; i < c->o->machines; i++)
		if (strcmp(c->o->machine[i], machine) == 0)
			return true;
	return c->o->machines == 0 || strcmp(machine, "host") == 0;
}

/* Returns true for parts of a machine that are omitted if the machine is not selected. The attributes that the host
 * determines stay, because the machine may be a culprit. */
static bool is_machine_internal(enum path_part part, const char *name)
{
	return part == PART_THREADS || (part == PART_ATTRIBUTE && (strcmp(name, cpu_schema[CPU_CURRENT].name) == 0 ||
	                                                           strcmp(name, cpu_schema[CPU_INTERRUPT].name) == 0));
}

static int copy_node(struct cut *c, uint32_t node, enum path_part part, bool inside, const char *above)
{
	for (uint32_t a = history_child(c->h, node, HISTORY_NONE); a != HISTORY_NONE; a = history_child(c->h, node, a)) {
		const char *name = history_name(c->h, a);
		enum path_part here = classify_part(part, name);
		bool named = here == PART_MACHINE || here == PART_REQUESTER, wanted = inside && (!named || is_selected(c, name));
		if ((here == PART_UNKNOWN && c->o->aliases) || (here == PART_REQUESTER && !wanted) ||
		    (!wanted && is_machine_internal(here, name)))
			continue;
		char buf[ALIAS_SIZE], *path;
		enum text_kind kind = named ? TEXT_MACHINE : here == PART_REQUEST ? TEXT_NAME : TEXT_PUBLIC;
		history_path(c->component, sizeof c->component, alias_name(c, kind, name, buf), NULL);
		path = mem_printf("%s%s", above, c->component);
		int rc = history_type(c->h, a) < 0 ? copy_node(c, a, here, wanted, path) : copy_intervals(c, a, part, path);
		free(path);
		if (rc)
			return -1;
		if (++c->attrs_done % 1024 == 0 && c->o->progress.tick &&
		    c->o->progress.tick(c->o->progress.arg, "cutting", c->attrs_done, c->attrs_total))
			return error_set(c->err, STATUS_CANCELLED, NULL, "cancelled");
	}
	return 0;
}

/* Returns true if the machine exists; passes the existing names to the suggestion. */
static bool has_machine(const struct cut *c, const char *machine, struct suggestion *closest)
{
	static const char *const root[] = { "/" SCHEMA_VMS, "/" SCHEMA_CONTAINERS };
	bool found = strcmp(machine, "host") == 0;
	suggest(closest, "host");
	for (size_t r = 0; r < 2 && !found; r++) {
		const uint32_t node = history_find(c->h, root[r]);
		for (uint32_t m = HISTORY_NONE; node != HISTORY_NONE && (m = history_child(c->h, node, m)) != HISTORY_NONE;) {
			found = found || strcmp(history_name(c->h, m), machine) == 0;
			suggest(closest, history_name(c->h, m));
		}
	}
	return found;
}

/* Fails if a selected machine does not exist. */
static int check_machines(const struct cut *c)
{
	for (size_t i = 0; i < c->o->machines; i++) {
		const char *machine = c->o->machine[i];
		struct suggestion closest = SUGGESTION(machine);
		if (has_machine(c, machine, &closest))
			continue;
		char text[NAME_SIZE], right[NAME_SIZE], remedy[NAME_SIZE + 20] = "stealscope info lists them";
		if (closest.nearest)
			snprintf(remedy, sizeof remedy, "did you mean %s?", text_escape(right, sizeof right, closest.nearest));
		return error_set(c->err, STATUS_USAGE, remedy, "--machines: no such machine: '%s'",
		                 text_escape(text, sizeof text, machine));
	}
	return 0;
}

/* ---- The whole history */

static const char *provenance_name(const void *arg, const char *text, char *buf)
{
	const struct cut *c = arg;
	return c->o->aliases && *text && strcmp(text, "host") != 0 ? alias_make(&c->key, text, buf) : text;
}

static bool provenance_selects(const void *arg, const char *machine)
{
	char text[NAME_SIZE];
	const struct cut *c = arg;
	bool found = c->o->machines == 0;
	for (size_t i = 0; i < c->o->machines; i++)
		found |= strcmp(text_escape(text, sizeof text, c->o->machine[i]), machine) == 0;
	return found;
}

static int copy_history(struct cut *c)
{
	const struct provenance_cut how = { c->o->from, c->o->to, c->o->aliases, provenance_name, provenance_selects, c };
	c->attrs_total = history_attribute_count(c->h);
	if (copy_node(c, history_find(c->h, "/"), PART_ROOT, true, ""))
		return -1;
	if ((c->o->from > history_first(c->h) || c->o->to < history_last(c->h)) &&
	    history_set_window(c->b, c->o->from, c->o->to))
		return error_set(c->err, STATUS_SYSTEM, NULL, "out of memory");
	return provenance_copy(c->h, c->b, &how, c->err);
}

int cut_history(struct history *h, const char *path, const struct cut_options *o, struct error *err)
{
	struct cut_options window = *o;
	window.from = o->from > history_begin(h) ? o->from : history_begin(h);
	window.to = o->to < history_end(h) ? o->to : history_end(h);
	struct cut c = { .h = h, .o = &window, .err = err };
	if ((o->aliases && alias_key(&c.key, o->key, err)) || check_machines(&c))
		return -1;
	int rc = recorded_reads_collect(&c.reads, h, window.from, window.to, o->progress, err);
	if (rc == 0 && !(c.b = history_create(path, NULL, err)))
		rc = -1;
	if (rc == 0)
		rc = copy_history(&c) || history_damage(h, err) ? -1 : 0;
	if (rc == 0)
		history_derive(c.b, culprit_sums_derive, NULL);
	if (rc)
		history_abort(c.b);
	else
		rc = history_finish(c.b, history_first(h), history_last(h), err);
	for (size_t s = 0; s < c.sets; s++)
		for (unsigned i = 0; i < c.set[s].n; i++)
			free(c.set[s].state[i]);
	free(c.set);
	recorded_reads_release(&c.reads);
	map_release(&c.text);
	return rc;
}

char *cut_alias(const char *key, const char *name, struct error *err)
{
	struct alias_key k;
	char buf[ALIAS_SIZE];
	if (strcmp(name, "host") == 0)
		return mem_dup(name);
	return alias_key(&k, key, err) ? NULL : mem_dup(alias_make(&k, name, buf));
}
