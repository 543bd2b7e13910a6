#include "trace/perfetto/event_classes.h"

#include "base/base.h"
#include "base/hash.h"

#define CLASSES_MAX 4096         /* number of generic and described classes */
#define NAME_LENGTH_MAX 127
#define FIELDS_MAX (EVENT_SLOTS - SLOTS_CONTEXT)

enum { DESCRIPTION_ID = 1, DESCRIPTION_MESSAGE = 2, MESSAGE_NAME = 1, MESSAGE_FIELD = 2, FIELD_NAME = 1, FIELD_NUMBER = 3,
       FIELD_TYPE = 5, TYPE_STRING = 9 };
enum { GENERIC_NAME = 1, GENERIC_FIELD = 2, GENERIC_FIELD_NAME = 1, GENERIC_TEXT = 3, GENERIC_SIGNED = 4,
       GENERIC_UNSIGNED = 5 };

struct class_field {
	uint32_t number;       /* in the message; 0: the fields have names (generic event) */
	bool is_text;
	char name[NAME_LENGTH_MAX + 1];
};

struct event_class {
	char name[NAME_LENGTH_MAX + 1];
	struct class_field *field;
	size_t fields, fields_cap;
	struct bound_class *bound;  /* NULL: not bound yet */
};

struct perfetto_classes {
	const struct layout *layout;
	struct string_cache *names;
	struct event_class **list;
	size_t classes, classes_cap;
	struct map known;      /* number of the message -> index + 1 in list; unknown numbers too */
	struct map described;  /* sequence << 32 | number of the message -> index + 1 */
	struct map generic;    /* hash of the names -> index + 1 */
};

/* ---- fields */

static bool resolve_field(const struct fields *f, const void *cls, struct field_path *p)
{
	const struct event_class *c = cls;
	*p = (struct field_path){ .leaf = LEAF_NONE };
	for (size_t i = 0; i < f->len && p->leaf == LEAF_NONE; i++) {
		const char *path = f->f[i].path;
		const bool is_tid = strcmp(path, "common_pid") == 0;
		if (f->f[i].scope != SCOPE_PAYLOAD && strncmp(path, "common_", 7) != 0)
			continue;  /* the bundle has the CPU; a field `cpu_id` of the payload may be another one (cpu_frequency) */
		if (is_tid || strcmp(path, "common_flags") == 0) {
			p->leaf = LEAF_SIGNED;
			p->slot = is_tid ? SLOT_TID : SLOT_FLAGS;
			break;
		}
		const unsigned slot = event_class_slot(c, path);
		if (slot == EVENT_SLOTS)
			continue;
		p->leaf = c->field[slot - SLOTS_CONTEXT].is_text ? LEAF_TEXT : LEAF_SIGNED;
		p->slot = slot;
	}
	return p->leaf != LEAF_NONE;
}

static int64_t read_number(const struct field_path *p, const void *event)
{
	const struct event_values *v = event;
	return p->leaf == LEAF_SIGNED && v->present >> p->slot & 1 ? v->number[p->slot] : EVENT_ABSENT;
}

static const char *read_text(const struct field_path *p, const void *event, size_t *max_len)
{
	const struct event_values *v = event;
	if (p->leaf != LEAF_TEXT || !(v->present >> p->slot & 1))
		return NULL;
	*max_len = v->text[p->slot].len;
	return v->text[p->slot].at;
}

static const struct field_source perfetto_fields = { resolve_field, read_number, read_text };

unsigned event_class_slot(const struct event_class *cls, const char *field)
{
	for (unsigned i = 0; i < cls->fields; i++)
		if (strcmp(cls->field[i].name, field) == 0)
			return i + SLOTS_CONTEXT;
	return EVENT_SLOTS;
}

/* ---- classes */

static struct event_class *class_new(const char *name, size_t len)
{
	struct event_class *c = mem_new(1, sizeof *c);
	snprintf(c->name, sizeof c->name, "%.*s", (int)(len < NAME_LENGTH_MAX ? len : NAME_LENGTH_MAX), name);
	return c;
}

static void class_free(struct event_class *c)
{
	rules_free(c->bound);
	free(c->field);
	free(c);
}

static void class_add_field(struct event_class *c, uint32_t number, bool is_text, const void *name, size_t len)
{
	if (c->fields == FIELDS_MAX)
		return;
	struct class_field *f = ARRAY_PUSH(c->field, c->fields, c->fields_cap);
	*f = (struct class_field){ .number = number, .is_text = is_text };
	len = len < NAME_LENGTH_MAX ? len : NAME_LENGTH_MAX;
	memcpy(f->name, name, len);
}

static struct event_class *class_of_known(const struct known_event *k)
{
	struct event_class *c = class_new(k->name, strlen(k->name));
	for (const struct known_field *f = k->field; f < k->field + KNOWN_FIELDS && f->number; f++)
		class_add_field(c, f->number, f->is_text, f->name, strlen(f->name));
	return c;
}

/* Adds the class. Returns it, bound to the layout's rules; NULL: there are too many. */
static struct event_class *add_class(struct perfetto_classes *c, struct event_class *cls, struct map *map, uint64_t key)
{
	if (c->classes >= CLASSES_MAX) {
		class_free(cls);
		return NULL;
	}
	*ARRAY_PUSH(c->list, c->classes, c->classes_cap) = cls;
	*map_put(map, key, NULL) = c->classes;
	cls->bound = rules_bind(c->layout, cls->name, &perfetto_fields, cls);
	return cls;
}

static struct event_class *find_class(const struct perfetto_classes *c, const struct map *map, uint64_t key)
{
	const uint64_t *index = map_find(map, key);
	return index ? c->list[*index - 1] : NULL;
}

/* ---- layout */

static size_t layout_score(const struct layout *l, const char *only, unsigned *enabled)
{
	size_t score = 0;
	for (const struct known_event *k = known_events; k->number; k++) {
		if (only && strcmp(only, k->name) != 0)
			continue;
		struct event_class *c = class_of_known(k);
		score += rules_score(l, c->name, &perfetto_fields, c, enabled);
		class_free(c);
	}
	return score;
}

struct perfetto_classes *event_classes_new(struct event_mapping *m, struct string_cache *names)
{
	struct perfetto_classes *c = mem_new(1, sizeof *c);
	size_t best = 0, best_score = 0;
	unsigned enabled = 0;
	for (size_t i = 0; i < m->layouts; i++) {
		const size_t score = layout_score(m->layout[i], NULL, &enabled);
		if (score > best_score) {
			best = i;
			best_score = score;
		}
	}
	c->layout = m->layout[best];
	c->names = names;
	atomic_store(&m->chosen, best_score ? best + 1 : 0);
	return c;
}

unsigned event_classes_enabled(const struct perfetto_classes *c, const char *name)
{
	unsigned enabled = 0;
	layout_score(c->layout, name, &enabled);
	return enabled;
}

void event_classes_free(struct perfetto_classes *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->classes; i++)
		class_free(c->list[i]);
	free(c->list);
	map_release(&c->known);
	map_release(&c->described);
	map_release(&c->generic);
	free(c);
}

const struct event_class *event_classes_known(struct perfetto_classes *c, uint32_t number)
{
	struct event_class *found = find_class(c, &c->known, number);
	if (found)
		return found;
	const struct known_event *k = known_events;
	while (k->number && k->number != number)
		k++;
	char name[32];
	snprintf(name, sizeof name, "ftrace event %u", (unsigned)number);
	return add_class(c, k->number ? class_of_known(k) : class_new(name, strlen(name)), &c->known, number);
}

/* ---- described messages */

static void add_described_field(struct event_class *cls, const struct proto_field *field)
{
	struct proto_message m = proto_nested(field);
	struct proto_field f, name = { 0 };
	uint64_t number = 0, type = 0;
	while (proto_next(&m, &f)) {
		if (f.number == FIELD_NAME && f.type == WIRE_BYTES)
			name = f;
		number = f.number == FIELD_NUMBER && f.type == WIRE_VARINT ? f.value : number;
		type = f.number == FIELD_TYPE && f.type == WIRE_VARINT ? f.value : type;
	}
	if (name.len && number && number <= UINT32_MAX)
		class_add_field(cls, (uint32_t)number, type == TYPE_STRING, name.data, name.len);
}

static struct event_class *class_of_description(const struct proto_field *message)
{
	struct event_class *cls = class_new("", 0);
	struct proto_message m = proto_nested(message);
	struct proto_field f;
	while (proto_next(&m, &f)) {
		if (f.number == MESSAGE_NAME && f.type == WIRE_BYTES)
			snprintf(cls->name, sizeof cls->name, "%.*s", (int)(f.len < NAME_LENGTH_MAX ? f.len : NAME_LENGTH_MAX),
			         (const char *)f.data);
		else if (f.number == MESSAGE_FIELD)
			add_described_field(cls, &f);
	}
	return cls;
}

void event_classes_describe(struct perfetto_classes *c, uint32_t sequence, const struct proto_field *description)
{
	struct proto_message m = proto_nested(description);
	struct proto_field f, message = { 0 };
	uint64_t number = 0;
	while (proto_next(&m, &f)) {
		number = f.number == DESCRIPTION_ID && f.type == WIRE_VARINT ? f.value : number;
		if (f.number == DESCRIPTION_MESSAGE && f.type == WIRE_BYTES)
			message = f;
	}
	const uint64_t key = (uint64_t)sequence << 32 | (uint32_t)number;
	if (number && number <= UINT32_MAX && message.data && !map_find(&c->described, key))
		add_class(c, class_of_description(&message), &c->described, key);
}

/* ---- generic events */

struct generic_field { const unsigned char *name; size_t len; bool is_text; struct proto_field value; };

static struct generic_field read_generic_field(const struct proto_field *field)
{
	struct generic_field g = { 0 };
	struct proto_message m = proto_nested(field);
	struct proto_field f;
	while (proto_next(&m, &f)) {
		if (f.number == GENERIC_FIELD_NAME && f.type == WIRE_BYTES) {
			g.name = f.data;
			g.len = f.len < NAME_LENGTH_MAX ? f.len : NAME_LENGTH_MAX;
		} else if ((f.number == GENERIC_TEXT && f.type == WIRE_BYTES) ||
		           ((f.number == GENERIC_SIGNED || f.number == GENERIC_UNSIGNED) && f.type == WIRE_VARINT)) {
			g.value = f;
			g.is_text = f.number == GENERIC_TEXT;
		}
	}
	return g;
}

/* Returns true if the class has exactly this name and these fields. */
static bool is_generic_class(const struct event_class *cls, const struct proto_field *name, const struct generic_field *g,
                             size_t n)
{
	if (strlen(cls->name) != name->len || cls->fields != n || memcmp(cls->name, name->data, name->len) != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (cls->field[i].is_text != g[i].is_text || strlen(cls->field[i].name) != g[i].len ||
		    memcmp(cls->field[i].name, g[i].name, g[i].len) != 0)
			return false;
	return true;
}

static const struct event_class *read_generic(struct perfetto_classes *c, const struct proto_field *message,
                                              struct event_values *v)
{
	struct generic_field g[FIELDS_MAX];
	struct proto_field f, name = { .data = (const unsigned char *)"" };
	struct proto_message m = proto_nested(message);
	size_t n = 0;
	while (proto_next(&m, &f)) {
		if (f.number == GENERIC_NAME && f.type == WIRE_BYTES) {
			name = f;
			name.len = f.len < NAME_LENGTH_MAX ? f.len : NAME_LENGTH_MAX;
		} else if (f.number == GENERIC_FIELD && n < FIELDS_MAX) {
			g[n] = read_generic_field(&f);
			n += g[n].len > 0;
		}
	}
	uint64_t hash = hash_bytes(HASH_BEGIN, name.data, name.len);
	for (size_t i = 0; i < n; i++)
		hash = hash_number(hash_bytes(hash, g[i].name, g[i].len), g[i].is_text);
	struct event_class *cls = find_class(c, &c->generic, hash);
	if (!cls || !is_generic_class(cls, &name, g, n)) {
		cls = class_new((const char *)name.data, name.len);
		for (size_t i = 0; i < n; i++)
			class_add_field(cls, 0, g[i].is_text, g[i].name, g[i].len);
		cls = add_class(c, cls, &c->generic, hash);
	}
	for (unsigned i = 0; i < n; i++) {
		if (g[i].is_text)
			values_set_text(v, i + SLOTS_CONTEXT, g[i].value.data, g[i].value.len);
		else if (g[i].value.number)
			values_set(v, i + SLOTS_CONTEXT, (int64_t)g[i].value.value);
	}
	return cls;
}

/* ---- events */

static void read_message(const struct event_class *cls, const struct proto_field *message, struct event_values *v)
{
	struct proto_message m = proto_nested(message);
	struct proto_field f;
	while (proto_next(&m, &f)) {
		unsigned i = 0;
		while (i < cls->fields && cls->field[i].number != f.number)
			i++;
		if (i == cls->fields || cls->field[i].is_text != (f.type == WIRE_BYTES))
			continue;
		if (cls->field[i].is_text)
			values_set_text(v, i + SLOTS_CONTEXT, f.data, f.len);
		else
			values_set(v, i + SLOTS_CONTEXT, (int64_t)f.value);
	}
}

const struct event_class *event_classes_read(struct perfetto_classes *c, uint32_t sequence,
                                             const struct proto_field *message, struct event_values *v)
{
	if (message->number == KNOWN_GENERIC)
		return read_generic(c, message, v);
	const struct event_class *cls = find_class(c, &c->described, (uint64_t)sequence << 32 | message->number);
	if (!cls)
		cls = event_classes_known(c, message->number);
	if (cls)
		read_message(cls, message, v);
	return cls;
}

void event_class_fill(const struct perfetto_classes *c, const struct event_class *cls, const struct event_values *v,
                      uint16_t cpu, struct event *ev)
{
	static const struct bound_class none;
	rules_event(cls ? cls->bound : &none, &perfetto_fields, c->names, v, cpu, ev);
}
