/* Scanner of CTF 2 metadata: finds the names of machine and trace, and the clock. */
#include "base/base.h"
#include "trace/ctf/fragments.h"
#include "trace/discovery/metadata.h"

static void set_if_empty(char *dst, size_t size, const char *value)
{
	if (value && !*dst)
		snprintf(dst, size, "%s", value);
}

static void set_uuid(char dst[40], const unsigned char u[16])
{
	char text[40], *at = text;
	for (size_t i = 0; i < 16; i++)
		at += snprintf(at, 4, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
	set_if_empty(dst, 40, text);
}

/* Returns the text of a string or integer member ("": absent): tracers write their version in either form. */
static const char *member_text(struct json_object *o, const char *key)
{
	struct json_object *found = NULL;
	json_object_object_get_ex(o, key, &found);
	return json_object_is_type(found, json_type_string) || json_object_is_type(found, json_type_int) ?
		json_object_get_string(found) : "";
}

static void read_environment(struct json_object *env, struct metadata *m)
{
	const char *patch = member_text(env, "tracer_patchlevel");
	set_if_empty(m->hostname, sizeof m->hostname, member_text(env, "hostname"));
	set_if_empty(m->domain, sizeof m->domain, member_text(env, "domain"));
	metadata_tracer(m, member_text(env, "tracer_name"), member_text(env, "tracer_major"), member_text(env, "tracer_minor"),
	                *patch ? patch : member_text(env, "tracer_patch"));
}

static void read_fragment(struct json_object *o, struct metadata *m)
{
	const char *type = ctf_json_string(o, "type");
	unsigned char uuid[16];
	if (!type)
		return;
	if (strcmp(type, "preamble") == 0 && ctf_json_uuid(o, "uuid", uuid)) {
		set_uuid(m->uuid, uuid);
	} else if (strcmp(type, "trace-class") == 0) {
		struct json_object *env = ctf_json_member(o, "environment", json_type_object);
		set_if_empty(m->uuid, sizeof m->uuid, ctf_json_string(o, "uid"));
		if (env)
			read_environment(env, m);
	} else if (strcmp(type, "clock-class") == 0) {
		struct json_object *offset = ctf_json_member(o, "offset-from-origin", json_type_object);
		set_if_empty(m->clock_uuid, sizeof m->clock_uuid, ctf_json_string(o, "uid"));
		if (offset)
			set_if_empty(m->clock_offset, sizeof m->clock_offset,
			             json_object_to_json_string_ext(offset, JSON_C_TO_STRING_PLAIN));
	}
}

void metadata_fragments(const char *text, size_t len, struct metadata *m)
{
	const char *at = text, *why = NULL;
	*m = (struct metadata){ 0 };
	for (struct json_object *o; (o = ctf_fragment_next(&at, text + len, &why));) {
		const char *type = ctf_json_string(o, "type");
		const bool is_rest = type && strcmp(type, "event-record-class") == 0;
		read_fragment(o, m);
		json_object_put(o);
		if (is_rest)
			break;  /* only event classes follow */
	}
}
