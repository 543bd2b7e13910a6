/* A look at CTF 2 metadata: who recorded it, and on which clock. */
#include <stdio.h>
#include <string.h>

#include "trace/ctf/fragments.h"
#include "trace/discovery/metadata.h"

static void keep(char *dst, size_t size, const char *value)
{
	if (value && !*dst)
		snprintf(dst, size, "%s", value);
}

static void keep_uuid(char dst[40], const unsigned char u[16])
{
	char text[40], *at = text;
	for (size_t i = 0; i < 16; i++)
		at += snprintf(at, 4, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
	keep(dst, 40, text);
}

/* A number as its digits: tracers write their versions as either. */
static const char *word(struct json_object *o, const char *key)
{
	struct json_object *found = NULL;
	json_object_object_get_ex(o, key, &found);
	return json_object_is_type(found, json_type_string) || json_object_is_type(found, json_type_int) ?
		json_object_get_string(found) : "";
}

static void take_environment(struct json_object *env, struct metadata *m)
{
	const char *patch = word(env, "tracer_patchlevel");
	keep(m->hostname, sizeof m->hostname, word(env, "hostname"));
	keep(m->domain, sizeof m->domain, word(env, "domain"));
	metadata_tracer(m, word(env, "tracer_name"), word(env, "tracer_major"), word(env, "tracer_minor"),
	                *patch ? patch : word(env, "tracer_patch"));
}

static void take(struct json_object *o, struct metadata *m)
{
	const char *type = ctf_json_text(o, "type");
	unsigned char uuid[16];
	if (!type)
		return;
	if (strcmp(type, "preamble") == 0 && ctf_json_uuid(o, "uuid", uuid)) {
		keep_uuid(m->uuid, uuid);
	} else if (strcmp(type, "trace-class") == 0) {
		struct json_object *env = ctf_json_of(o, "environment", json_type_object);
		keep(m->uuid, sizeof m->uuid, ctf_json_text(o, "uid"));
		if (env)
			take_environment(env, m);
	} else if (strcmp(type, "clock-class") == 0) {
		struct json_object *offset = ctf_json_of(o, "offset-from-origin", json_type_object);
		keep(m->clock_uuid, sizeof m->clock_uuid, ctf_json_text(o, "uid"));
		if (offset)
			keep(m->clock_offset, sizeof m->clock_offset, json_object_to_json_string_ext(offset, JSON_C_TO_STRING_PLAIN));
	}
}

void metadata_fragments(const char *text, size_t len, struct metadata *m)
{
	const char *at = text, *why = NULL;
	*m = (struct metadata){ 0 };
	for (struct json_object *o; (o = ctf_fragment_next(&at, text + len, &why));) {
		const char *type = ctf_json_text(o, "type");
		const bool is_rest = type && strcmp(type, "event-record-class") == 0;
		take(o, m);
		json_object_put(o);
		if (is_rest)
			break;  /* what follows is event classes */
	}
}
