#include "trace/ctf/classes.h"

#include "base/base.h"
#include "trace/ctf/fragments.h"

#define MAX_CLASSES 65536  /* limit of event class ids */
#define MAX_OPS 2000000    /* most operations of all programs */

static const char *const packet_field_name[CTF_PACKET_FIELDS] = {
	"magic", "uuid", "stream_id", "stream_instance_id",
	"timestamp_begin", "timestamp_end", "content_size", "packet_size", "events_discarded", "packet_seq_num",
};

/* ---- fields of a layout */

/* Scopes in which a layout's field is searched. If shared and own are NULL, the search only checks that the field
 * exists; otherwise it assigns a slot to the field. */
struct field_lookup {
	struct ctf_scopes scopes;
	struct ctf_slots *shared, *own;
};

/* Compares names. Ignores one or two underscores at the start of `name`, which the metadata adds to names that C or the
 * tracer reserves. */
static bool name_matches(const char *name, const char *wanted, size_t len)
{
	name += *name == '_';
	return ctf_name_equals(name, wanted, len) || (*name == '_' && ctf_name_equals(name + 1, wanted, len));
}

static bool is_packet_field(const char *name)
{
	for (size_t i = CTF_BEGIN_TIME; i < CTF_PACKET_FIELDS; i++)
		if (strcmp(name + (*name == '_'), packet_field_name[i]) == 0)
			return true;
	return false;
}

static struct ctf_type *find_field(const struct ctf_type *t, const char *path, bool in_packet)
{
	while (t && *path && (t->kind == CTF_STRUCT || t->kind == CTF_VARIANT)) {
		const size_t len = (size_t)(strchrnul(path, '.') - path);
		struct ctf_type *found = NULL;
		for (const struct ctf_member *m = t->member; m && !found; m = m->next)
			if (name_matches(m->name, path, len) && !m->type->clock && !(in_packet && is_packet_field(m->name)))
				found = m->type;
		path += len + (path[len] == '.');
		if (found && !*path)
			return found;
		t = found;
	}
	return NULL;
}

static enum leaf_type leaf_type_of(const struct ctf_type *t)
{
	if (t->kind == CTF_INTEGER)
		return t->is_signed ? LEAF_SIGNED : LEAF_UNSIGNED;
	return t->kind == CTF_STRING || (t->kind == CTF_ARRAY && t->is_text) ? LEAF_TEXT : LEAF_NONE;
}

static bool resolve_in_scope(struct ctf_type *root, enum root from, const char *name, const struct field_lookup *l,
                             struct field_path *p)
{
	struct ctf_type *t = find_field(root, name, from == ROOT_PACKET);
	struct ctf_slots *slots = from == ROOT_PACKET || from == ROOT_COMMON ? l->shared : l->own;
	if (!t || leaf_type_of(t) == LEAF_NONE || (slots && !ctf_assign_slot(t, slots)))
		return false;
	*p = (struct field_path){ .leaf = leaf_type_of(t), .from = from, .slot = t->slot };
	return true;
}

bool ctf_find_field(const struct fields *f, const void *cls, struct field_path *p)
{
	const struct field_lookup *l = cls;
	const struct ctf_scopes *s = &l->scopes;
	*p = (struct field_path){ .leaf = LEAF_NONE };
	for (size_t i = 0; i < f->len; i++) {
		const char *name = f->f[i].path;
		bool found = false;
		switch (f->f[i].scope) {
		case SCOPE_PACKET:
			found = resolve_in_scope(s->packet_context, ROOT_PACKET, name, l, p);
			break;
		case SCOPE_CONTEXT:
			found = resolve_in_scope(s->own_context, ROOT_SPECIFIC, name, l, p) ||
			        resolve_in_scope(s->event_context, ROOT_COMMON, name, l, p);
			break;
		case SCOPE_PAYLOAD:
			found = resolve_in_scope(s->payload, ROOT_PAYLOAD, name, l, p);
			break;
		}
		if (found)
			return true;
	}
	return false;
}

static const struct field_source names_only = { ctf_find_field, NULL, NULL };  /* resolves only; for rules_bind() */

/* ---- building */

struct class_builder {
	struct ctf_classes *c;
	struct ctf_metadata metadata;  /* temporary: the result does not refer to its types and names */
	const struct layout *layout;
	struct ctf_slots shared;
	size_t ops;
	const char *reason;
};

static void reject_trace(struct class_builder *k, const char *reason)
{
	k->reason = k->reason ? k->reason : reason;
}

static bool is_event_of_stream(const struct ctf_metadata *m, const struct ctf_event *e, const struct ctf_stream *s)
{
	return e->has_stream_id ? e->stream_id == s->id : !m->stream || !m->stream->next;
}

static struct ctf_scopes scopes_of_event(const struct ctf_metadata *m, const struct ctf_stream *s,
                                         const struct ctf_event *e)
{
	return (struct ctf_scopes){ m->packet_header, s->packet_context, s->event_header, s->event_context,
		e ? e->context : NULL, e ? e->payload : NULL };
}

static size_t score_layout(const struct ctf_metadata *m, const struct layout *l, unsigned *enabled_events)
{
	size_t total = 0;
	*enabled_events = 0;
	for (const struct ctf_stream *s = m->stream; s; s = s->next) {
		for (const struct ctf_event *e = m->event; e; e = e->next) {
			const struct field_lookup lookup = { .scopes = scopes_of_event(m, s, e) };
			if (is_event_of_stream(m, e, s))
				total += rules_score(l, e->name, &names_only, &lookup, enabled_events);
		}
	}
	return total;
}

static const struct layout *choose_layout(const struct ctf_metadata *m, struct event_mapping *mapping)
{
	size_t best = 0, best_score = 0;
	unsigned enabled_events, best_enabled = 0;
	for (size_t i = 0; i < mapping->layouts; i++) {
		const size_t fits = score_layout(m, mapping->layout[i], &enabled_events);
		if (fits > best_score) {
			best = i;
			best_score = fits;
			best_enabled = enabled_events;
		}
	}
	atomic_store(&mapping->enabled_events,
	             best_enabled); /* the metadata describes the events that were enabled, whether they
	                                             * occur or not */
	atomic_store(&mapping->chosen, best_score ? best + 1 : 0);
	return mapping->layout[best];
}

/* Assigns slots to the packet fields [from, to) of packet_field_name[]. */
static void assign_packet_fields(struct class_builder *k, struct ctf_type *root, size_t from, size_t to,
                                 uint32_t field_slot[CTF_PACKET_FIELDS], struct ctf_slots *slots)
{
	for (size_t i = from; i < to; i++) {
		struct ctf_type *t = root ? ctf_member_find(root, packet_field_name[i], strlen(packet_field_name[i])) : NULL;
		field_slot[i] = CTF_NO_SLOT;
		if (!t)
			continue;
		if (i == CTF_UUID) {
			if (t->kind != CTF_ARRAY || t->control_path || t->length != 16 || t->element->size != 8 || t->align != 8)
				reject_trace(k, "UUID field is not 16 bytes");
			t->is_text = true;
		} else if (t->kind != CTF_INTEGER || t->is_signed) {
			reject_trace(k, "packet field is not an unsigned integer");
		}
		if (!ctf_assign_slot(t, slots))
			reject_trace(k, "too many fields in the packet header");
		field_slot[i] = t->slot;
	}
}

/* Sets *clock to the clock of all timestamp fields in t. Returns false if they use different clocks. */
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

/* Converts cycles to ns with the same rounding as libbabeltrace2. Returns false if the result is out of range. */
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

static void set_clock(struct class_builder *k, const struct ctf_stream *s, struct ctf_stream_class *to)
{
	const struct ctf_metadata *m = &k->metadata;
	const char *name = NULL;
	if (!find_clock(s->packet_context, &name) || !find_clock(s->event_header, &name))
		reject_trace(k, "stream with several clocks");
	if (k->reason || !name)
		return;  /* without a clock, ctf_time() returns INT64_MIN */
	const struct ctf_clock *c = m->clock;
	while (c && strcmp(c->name, name) != 0)
		c = c->next;
	if (!c || !c->frequency || c->offset < 0) {
		reject_trace(k, c ? "a clock without a valid frequency and offset" : "a clock is not described");
		return;
	}
	const uint64_t cycles = (uint64_t)c->offset;
	int64_t seconds = c->offset_s, rest, ns;
	to->frequency = c->frequency;
	if (__builtin_add_overflow(seconds, (int64_t)(cycles / c->frequency), &seconds) ||
	    !cycles_to_ns(c->frequency, cycles % c->frequency, &rest) || __builtin_mul_overflow(seconds, 1000000000, &ns) ||
	    __builtin_add_overflow(ns, rest, &to->origin))
		reject_trace(k, "a clock begins more than 292 years from 1970, which 64-bit nanoseconds cannot hold");
}

/* Rejects packet times with less than 64 bits: the begin time sets the clock, which extends the shorter timestamps of
 * events. */
static void check_packet_times(struct class_builder *k, const struct ctf_stream *s)
{
	static const char *const fields[] = { "timestamp_begin", "timestamp_end" };
	for (size_t i = 0; i < 2; i++) {
		const struct ctf_type *t = !s->packet_context ? NULL :
			ctf_member_find(s->packet_context, fields[i], strlen(fields[i]));
		if (t && (t->kind != CTF_INTEGER || t->size != 64))
			reject_trace(k, "packet times are not 64-bit");
	}
}

static void assign_stream_slots(struct class_builder *k, const struct ctf_stream *s, struct ctf_stream_class *to)
{
	const struct ctf_metadata *m = &k->metadata;
	const struct field_lookup lookup = { .scopes = scopes_of_event(m, s, NULL), .shared = &k->shared };
	memcpy(to->field_slot, k->c->field_slot, sizeof to->field_slot);
	assign_packet_fields(k, s->packet_context, CTF_BEGIN_TIME, CTF_PACKET_FIELDS, to->field_slot, &k->shared);
	ctf_find_field(&k->layout->cpu, &lookup, &to->cpu);
	if (to->cpu.from != ROOT_PACKET)
		to->cpu.leaf = LEAF_NONE;
	if (s->event_header)
		reject_trace(k, ctf_assign_header_slots(s->event_header, &k->shared));
	reject_trace(k, ctf_resolve_controls(s->packet_context, &lookup.scopes, &k->shared));
	reject_trace(k, ctf_resolve_controls(s->event_header, &lookup.scopes, &k->shared));
	reject_trace(k, ctf_resolve_controls(s->event_context, &lookup.scopes, &k->shared));
}

static struct ctf_event_class *event_class_at(struct class_builder *k, struct ctf_stream_class *to, uint64_t id)
{
	if (id >= MAX_CLASSES) {
		reject_trace(k, "event class id too large");
		return NULL;
	}
	while (to->classes <= id) {
		const size_t capacity = to->classes ? 2 * to->classes : 64;
		to->class = mem_resize(to->class, capacity, sizeof *to->class);
		memset(to->class + to->classes, 0, (capacity - to->classes) * sizeof *to->class);
		to->classes = capacity;
	}
	if (to->class[id].bound)
		reject_trace(k, "duplicate event class id");
	return &to->class[id];
}

static void bind_event_class(struct class_builder *k, const struct ctf_stream *s, const struct ctf_event *e,
                             struct ctf_stream_class *to)
{
	struct ctf_event_class *class = event_class_at(k, to, e->id);
	if (!class || k->reason)
		return;
	struct ctf_slots own = { CTF_OWN_SLOTS, CTF_MAX_SLOTS };
	const struct field_lookup lookup = { scopes_of_event(&k->metadata, s, e), &k->shared, &own };
	class->bound = rules_bind(k->layout, e->name, &names_only, &lookup);
	if (class->bound->cpu.from == ROOT_PACKET)
		class->bound->cpu.leaf = LEAF_NONE;  /* the CPU in the packet context is read once per packet */
	reject_trace(k, ctf_resolve_controls(e->context, &lookup.scopes, &own));
	reject_trace(k, ctf_resolve_controls(e->payload, &lookup.scopes, &own));
	if (own.next >= own.end || k->shared.next >= k->shared.end)
		reject_trace(k, "too many fields");
	k->c->slots = own.next > k->c->slots ? own.next : k->c->slots;
}

static void compile_stream_class(struct class_builder *k, const struct ctf_stream *s, struct ctf_stream_class *to)
{
	const struct ctf_metadata *m = &k->metadata;
	struct ctf_position position = CTF_UNKNOWN_POSITION;
	reject_trace(k, ctf_compile(&to->context, &(struct ctf_type *){ s->packet_context }, 1, &position, m->is_big_endian,
	                            true));
	position = (struct ctf_position)CTF_UNKNOWN_POSITION;
	reject_trace(k, ctf_compile(&to->header, &(struct ctf_type *){ s->event_header }, 1, &position, m->is_big_endian,
	                            true));
	size_t events = 0;
	for (const struct ctf_event *e = m->event; e && !k->reason; e = e->next) {
		if (!is_event_of_stream(m, e, s))
			continue;
		struct ctf_position after = position;
		struct ctf_type *const root[] = { s->event_context, e->context, e->payload };
		struct ctf_event_class *class = &to->class[e->id];
		reject_trace(k, ctf_compile(&class->program, root, 3, &after, m->is_big_endian, false));
		k->ops += class->program.ops;
		if (k->ops > MAX_OPS)
			reject_trace(k, "too many fields");
		to->single_class = events++ ? NULL : class;
	}
}

static void build_stream_class(struct class_builder *k, const struct ctf_stream *s, struct ctf_stream_class *to)
{
	const struct ctf_metadata *m = &k->metadata;
	to->id = s->id;
	k->shared = (struct ctf_slots){ CTF_STREAM_SLOTS, CTF_OWN_SLOTS };
	set_clock(k, s, to);
	check_packet_times(k, s);
	if (!k->reason)
		assign_stream_slots(k, s, to);
	for (const struct ctf_event *e = m->event; e && !k->reason; e = e->next)
		if (is_event_of_stream(m, e, s))
			bind_event_class(k, s, e, to);
	if (!k->reason)
		compile_stream_class(k, s, to);
}

static void build_stream_classes(struct class_builder *k)
{
	static const struct ctf_stream only = { 0 };  /* metadata without a stream class describes one without fields */
	const struct ctf_stream *const first = k->metadata.stream ? k->metadata.stream : &only;
	struct ctf_classes *c = k->c;
	size_t n = 0;
	for (const struct ctf_stream *s = first; s; s = s->next)
		n++;
	c->stream = mem_new(n, sizeof *c->stream);
	for (const struct ctf_stream *s = first; s && !k->reason; s = s->next) {
		for (size_t i = 0; i < c->streams; i++)
			if (c->stream[i].id == s->id)
				reject_trace(k, "duplicate stream class id");
		build_stream_class(k, s, &c->stream[c->streams++]);
	}
}

static void build_classes(struct class_builder *k, struct event_mapping *mapping)
{
	struct ctf_classes *c = k->c;
	const struct ctf_metadata *m = &k->metadata;
	struct ctf_slots first = { 0, CTF_STREAM_SLOTS };
	c->has_uuid = m->has_uuid;
	memcpy(c->uuid, m->uuid, sizeof c->uuid);
	assign_packet_fields(k, m->packet_header, CTF_MAGIC, CTF_BEGIN_TIME, c->field_slot, &first);
	const struct ctf_scopes scopes = { .packet_header = m->packet_header };
	reject_trace(k, ctf_resolve_controls(m->packet_header, &scopes, &first));
	if (k->reason)
		return;
	struct ctf_position position = CTF_UNKNOWN_POSITION;
	reject_trace(k, ctf_compile(&c->packet_header, &m->packet_header, 1, &position, m->is_big_endian, false));
	if (k->reason)
		return;
	k->layout = choose_layout(m, mapping);
	build_stream_classes(k);
}

const char *ctf_classes_make(struct ctf_classes *c, const char *text, size_t len, struct event_mapping *mapping)
{
	struct class_builder k = { .c = c };
	*c = (struct ctf_classes){ .slots = CTF_OWN_SLOTS };
	(ctf_is_json_metadata(text, len) ? ctf_metadata_parse_json : ctf_metadata_parse)(&k.metadata, text, len);
	reject_trace(&k, k.metadata.reason);
	if (!k.reason)
		build_classes(&k, mapping);
	ctf_metadata_release(&k.metadata);
	return k.reason;
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
