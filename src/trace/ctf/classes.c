#include "trace/ctf/classes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/ctf/fragments.h"

#define MOST_CLASSES 65536  /* ids of event classes are below */
#define MOST_OPS 2000000    /* of all programs */

static const char *const told_name[CTF_TOLD] = {
	"magic", "uuid", "stream_id", "stream_instance_id",
	"timestamp_begin", "timestamp_end", "content_size", "packet_size", "events_discarded", "packet_seq_num",
};

/* ---- a layout's fields */

/* What fields are looked up in; without slots, they are only asked for. */
struct lookup {
	struct ctf_scopes scopes;
	struct ctf_slots *shared, *own;
};

/* Names that C or the tracer reserves carry underscores that are not theirs. */
static bool same_name(const char *name, const char *want, size_t len)
{
	name += *name == '_';
	return ctf_is_called(name, want, len) || (*name == '_' && ctf_is_called(name + 1, want, len));
}

static bool is_told(const char *name)
{
	for (size_t i = CTF_BEGIN; i < CTF_TOLD; i++)
		if (strcmp(name + (*name == '_'), told_name[i]) == 0)
			return true;
	return false;
}

static struct ctf_type *find(const struct ctf_type *t, const char *path, bool in_packet)
{
	while (t && *path && (t->kind == CTF_STRUCT || t->kind == CTF_VARIANT)) {
		const size_t len = (size_t)(strchrnul(path, '.') - path);
		struct ctf_type *found = NULL;
		for (const struct ctf_member *m = t->member; m && !found; m = m->next)
			if (same_name(m->name, path, len) && !m->type->clock && !(in_packet && is_told(m->name)))
				found = m->type;
		path += len + (path[len] == '.');
		if (found && !*path)
			return found;
		t = found;
	}
	return NULL;
}

static enum leaf_type leaf_of(const struct ctf_type *t)
{
	if (t->kind == CTF_INTEGER)
		return t->is_signed ? LEAF_SIGNED : LEAF_UNSIGNED;
	return t->kind == CTF_STRING || (t->kind == CTF_ARRAY && t->is_text) ? LEAF_TEXT : LEAF_NONE;
}

static bool resolve_in(struct ctf_type *root, enum root from, const char *name, const struct lookup *l,
                       struct field_path *p)
{
	struct ctf_type *t = find(root, name, from == ROOT_PACKET);
	struct ctf_slots *slots = from == ROOT_PACKET || from == ROOT_COMMON ? l->shared : l->own;
	if (!t || leaf_of(t) == LEAF_NONE || (slots && !ctf_want(t, slots)))
		return false;
	*p = (struct field_path){ .leaf = leaf_of(t), .from = from, .slot = t->slot };
	return true;
}

bool ctf_find_field(const struct fields *f, const void *cls, struct field_path *p)
{
	const struct lookup *l = cls;
	const struct ctf_scopes *s = &l->scopes;
	*p = (struct field_path){ .leaf = LEAF_NONE };
	for (size_t i = 0; i < f->len; i++) {
		const char *name = f->f[i].path;
		bool found = false;
		switch (f->f[i].scope) {
		case SCOPE_PACKET:
			found = resolve_in(s->packet_context, ROOT_PACKET, name, l, p);
			break;
		case SCOPE_CONTEXT:
			found = resolve_in(s->own_context, ROOT_SPECIFIC, name, l, p) ||
			        resolve_in(s->event_context, ROOT_COMMON, name, l, p);
			break;
		case SCOPE_PAYLOAD:
			found = resolve_in(s->payload, ROOT_PAYLOAD, name, l, p);
			break;
		}
		if (found)
			return true;
	}
	return false;
}

static const struct field_source names_only = { ctf_find_field, NULL, NULL };  /* for rules_bind() */

/* ---- making */

struct maker {
	struct ctf_classes *c;
	struct ctf_metadata metadata;  /* what is made of it keeps nothing of its types and names */
	const struct layout *layout;
	struct ctf_slots shared;
	size_t ops;
	const char *why;
};

static void check(struct maker *k, const char *why)
{
	k->why = k->why ? k->why : why;
}

static bool is_of(const struct ctf_metadata *m, const struct ctf_event *e, const struct ctf_stream *s)
{
	return e->has_stream_id ? e->stream_id == s->id : !m->stream->next;
}

static struct ctf_scopes scopes_of(const struct ctf_metadata *m, const struct ctf_stream *s, const struct ctf_event *e)
{
	return (struct ctf_scopes){ m->packet_header, s->packet_context, s->event_header, s->event_context,
		e ? e->context : NULL, e ? e->payload : NULL };
}

static size_t score(const struct ctf_metadata *m, const struct layout *l, unsigned *asked)
{
	size_t all = 0;
	*asked = 0;
	for (const struct ctf_stream *s = m->stream; s; s = s->next) {
		for (const struct ctf_event *e = m->event; e; e = e->next) {
			const struct lookup in = { .scopes = scopes_of(m, s, e) };
			if (is_of(m, e, s))
				all += rules_score(l, e->name, &names_only, &in, asked);
		}
	}
	return all;
}

static const struct layout *choose_layout(const struct ctf_metadata *m, struct meaning *meaning)
{
	size_t best = 0, best_score = 0;
	unsigned asked, best_asked = 0;
	for (size_t i = 0; i < meaning->layouts; i++) {
		const size_t fits = score(m, meaning->layout[i], &asked);
		if (fits > best_score) {
			best = i;
			best_score = fits;
			best_asked = asked;
		}
	}
	atomic_store(&meaning->asked, best_asked);  /* tracers describe the events that they were asked for */
	atomic_store(&meaning->chosen, best_score ? best + 1 : 0);
	return meaning->layout[best];
}

/* The fields that mean something by their names. */
static void want_told(struct maker *k, struct ctf_type *root, size_t from, size_t to, uint32_t told[CTF_TOLD],
                      struct ctf_slots *slots)
{
	for (size_t i = from; i < to; i++) {
		struct ctf_type *t = root ? ctf_member_find(root, told_name[i], strlen(told_name[i])) : NULL;
		told[i] = CTF_NO_SLOT;
		if (!t)
			continue;
		if (i == CTF_UUID) {
			if (t->kind != CTF_ARRAY || t->where || t->length != 16 || t->element->size != 8 || t->align != 8)
				check(k, "a UUID that is not of 16 bytes");
			t->is_text = true;
		} else if (t->kind != CTF_INTEGER || t->is_signed) {
			check(k, "a packet that is not described by numbers without a sign");
		}
		if (!ctf_want(t, slots))
			check(k, "too many fields in a packet's header");
		told[i] = t->slot;
	}
}

/* Of all the fields that are times; false: of several clocks. */
static bool find_clock(const struct ctf_type *t, const char **clock)
{
	if (t && t->clock) {
		if (*clock && strcmp(*clock, t->clock) != 0)
			return false;
		*clock = t->clock;
	}
	for (const struct ctf_member *m = t ? t->member : NULL; m; m = m->next)
		if (!find_clock(m->type, clock))
			return false;
	return !t || !t->element || find_clock(t->element, clock);
}

/* Cycles -> ns, as libbabeltrace2 rounds them. */
static bool cycles_to_ns(uint64_t frequency, uint64_t cycles, int64_t *ns)
{
	if (frequency == 1000000000) {
		*ns = (int64_t)cycles;
		return cycles <= INT64_MAX;
	}
	const double v = 1e9 * (double)cycles / (double)frequency;
	*ns = v < 9.2e18 ? (int64_t)(uint64_t)v : 0;
	return v < 9.2e18;
}

int64_t ctf_time(const struct ctf_stream_class *s, uint64_t cycles)
{
	int64_t ns;
	if (!cycles_to_ns(s->frequency, cycles, &ns) || __builtin_add_overflow(ns, s->origin, &ns))
		return INT64_MIN;
	return ns;
}

static void make_clock(struct maker *k, const struct ctf_stream *s, struct ctf_stream_class *to)
{
	const struct ctf_metadata *m = &k->metadata;
	const char *name = NULL;
	if (!find_clock(s->packet_context, &name) || !find_clock(s->event_header, &name) || !name)
		check(k, "a stream of no clock, or of several");
	if (k->why)
		return;
	const struct ctf_clock *c = m->clock;
	while (c && strcmp(c->name, name) != 0)
		c = c->next;
	if (!c || !c->frequency || c->offset < 0) {
		check(k, "a clock that is not understood");
		return;
	}
	const uint64_t cycles = (uint64_t)c->offset;
	int64_t seconds = c->offset_s, rest, ns;
	to->frequency = c->frequency;
	if (__builtin_add_overflow(seconds, (int64_t)(cycles / c->frequency), &seconds) ||
	    !cycles_to_ns(c->frequency, cycles % c->frequency, &rest) || __builtin_mul_overflow(seconds, 1000000000, &ns) ||
	    __builtin_add_overflow(ns, rest, &to->origin))
		check(k, "a clock that is not understood");
}

/* A packet's begin sets the clock: times of fewer bits are told apart by it. */
static void check_times(struct maker *k, const struct ctf_stream *s)
{
	static const char *const times[] = { "timestamp_begin", "timestamp_end" };
	for (size_t i = 0; i < 2; i++) {
		const struct ctf_type *t = !s->packet_context ? NULL :
			ctf_member_find(s->packet_context, times[i], strlen(times[i]));
		if (!t || t->kind != CTF_INTEGER || t->size != 64)
			check(k, "packets that do not tell their times in 64 bits");
	}
}

static void mark(struct maker *k, const struct ctf_stream *s, struct ctf_stream_class *to)
{
	const struct ctf_metadata *m = &k->metadata;
	const struct lookup in = { .scopes = scopes_of(m, s, NULL), .shared = &k->shared };
	memcpy(to->told, k->c->told, sizeof to->told);
	want_told(k, s->packet_context, CTF_BEGIN, CTF_TOLD, to->told, &k->shared);
	ctf_find_field(&k->layout->cpu, &in, &to->cpu);
	if (to->cpu.from != ROOT_PACKET)
		to->cpu.leaf = LEAF_NONE;
	if (s->event_header)
		check(k, ctf_want_header(s->event_header, &k->shared));
	check(k, ctf_resolve(s->packet_context, &in.scopes, &k->shared));
	check(k, ctf_resolve(s->event_header, &in.scopes, &k->shared));
	check(k, ctf_resolve(s->event_context, &in.scopes, &k->shared));
}

static struct ctf_class *class_of(struct maker *k, struct ctf_stream_class *to, uint64_t id)
{
	if (id >= MOST_CLASSES) {
		check(k, "event classes with large numbers");
		return NULL;
	}
	while (to->classes <= id) {
		const size_t room = to->classes ? 2 * to->classes : 64;
		to->class = mem_resize(to->class, room, sizeof *to->class);
		memset(to->class + to->classes, 0, (room - to->classes) * sizeof *to->class);
		to->classes = room;
	}
	if (to->class[id].bound)
		check(k, "two event classes of the same number");
	return &to->class[id];
}

static void bind_event(struct maker *k, const struct ctf_stream *s, const struct ctf_event *e,
                       struct ctf_stream_class *to)
{
	struct ctf_class *class = class_of(k, to, e->id);
	if (!class || k->why)
		return;
	struct ctf_slots own = { CTF_OWN_SLOTS, CTF_MOST_SLOTS };
	const struct lookup in = { scopes_of(&k->metadata, s, e), &k->shared, &own };
	class->bound = rules_bind(k->layout, e->name, &names_only, &in);
	if (class->bound->cpu.from == ROOT_PACKET)
		class->bound->cpu.leaf = LEAF_NONE;  /* read once per packet */
	check(k, ctf_resolve(e->context, &in.scopes, &own));
	check(k, ctf_resolve(e->payload, &in.scopes, &own));
	if (own.next >= own.end || k->shared.next >= k->shared.end)
		check(k, "too many fields");
	k->c->slots = own.next > k->c->slots ? own.next : k->c->slots;
}

static void compile_stream(struct maker *k, const struct ctf_stream *s, struct ctf_stream_class *to)
{
	const struct ctf_metadata *m = &k->metadata;
	struct ctf_place place = CTF_ANYWHERE;
	check(k, ctf_compile(&to->context, &(struct ctf_type *){ s->packet_context }, 1, &place, m->big, true));
	place = (struct ctf_place)CTF_ANYWHERE;
	check(k, ctf_compile(&to->header, &(struct ctf_type *){ s->event_header }, 1, &place, m->big, true));
	size_t events = 0;
	for (const struct ctf_event *e = m->event; e && !k->why; e = e->next) {
		if (!is_of(m, e, s))
			continue;
		struct ctf_place after = place;
		struct ctf_type *const root[] = { s->event_context, e->context, e->payload };
		struct ctf_class *class = &to->class[e->id];
		check(k, ctf_compile(&class->program, root, 3, &after, m->big, false));
		k->ops += class->program.ops;
		if (k->ops > MOST_OPS)
			check(k, "too many fields");
		to->only = events++ ? NULL : class;
	}
}

static void make_stream(struct maker *k, const struct ctf_stream *s, struct ctf_stream_class *to)
{
	const struct ctf_metadata *m = &k->metadata;
	to->id = s->id;
	k->shared = (struct ctf_slots){ CTF_STREAM_SLOTS, CTF_OWN_SLOTS };
	make_clock(k, s, to);
	check_times(k, s);
	if (!k->why)
		mark(k, s, to);
	for (const struct ctf_event *e = m->event; e && !k->why; e = e->next)
		if (is_of(m, e, s))
			bind_event(k, s, e, to);
	if (!k->why)
		compile_stream(k, s, to);
	if (to->told[CTF_SIZE] == CTF_NO_SLOT)
		check(k, "packets that do not tell their size");
}

static void make_streams(struct maker *k)
{
	struct ctf_classes *c = k->c;
	size_t n = 0;
	for (const struct ctf_stream *s = k->metadata.stream; s; s = s->next)
		n++;
	c->stream = mem_new(n + 1, sizeof *c->stream);
	for (const struct ctf_stream *s = k->metadata.stream; s && !k->why; s = s->next) {
		for (size_t i = 0; i < c->streams; i++)
			if (c->stream[i].id == s->id)
				check(k, "two stream classes of the same number");
		make_stream(k, s, &c->stream[c->streams++]);
	}
	if (!n)
		check(k, "no stream class");
}

static void make(struct maker *k, struct meaning *meaning)
{
	struct ctf_classes *c = k->c;
	const struct ctf_metadata *m = &k->metadata;
	struct ctf_slots first = { 0, CTF_STREAM_SLOTS };
	c->has_uuid = m->has_uuid;
	memcpy(c->uuid, m->uuid, sizeof c->uuid);
	want_told(k, m->packet_header, CTF_MAGIC, CTF_BEGIN, c->told, &first);
	const struct ctf_scopes scopes = { .packet_header = m->packet_header };
	check(k, ctf_resolve(m->packet_header, &scopes, &first));
	if (k->why)
		return;
	struct ctf_place place = CTF_ANYWHERE;
	check(k, ctf_compile(&c->packet_header, &m->packet_header, 1, &place, m->big, false));
	if (k->why)
		return;
	k->layout = choose_layout(m, meaning);
	make_streams(k);
}

const char *ctf_classes_make(struct ctf_classes *c, const char *text, size_t len, struct meaning *meaning)
{
	struct maker k = { .c = c };
	*c = (struct ctf_classes){ .slots = CTF_OWN_SLOTS };
	(ctf_is_fragments(text, len) ? ctf_metadata_fragments : ctf_metadata_parse)(&k.metadata, text, len);
	check(&k, k.metadata.why);
	if (!k.why)
		make(&k, meaning);
	ctf_metadata_release(&k.metadata);
	return k.why;
}

void ctf_classes_release(struct ctf_classes *c)
{
	for (size_t i = 0; i < c->streams; i++) {
		struct ctf_stream_class *s = &c->stream[i];
		ctf_program_release(&s->context);
		ctf_program_release(&s->header);
		for (size_t k = 0; k < s->classes; k++) {
			rules_free(s->class[k].bound);
			ctf_program_release(&s->class[k].program);
		}
		free(s->class);
	}
	free(c->stream);
	ctf_program_release(&c->packet_header);
	*c = (struct ctf_classes){ 0 };
}
