#include "report/guest_time.h"

#include "base/base.h"
#include "base/int128.h"
#include "base/json_field.h"
#include "report/writer.h"

#define DRIFT_BITS 60  /* the drift is stored in units of 2^-60 */

struct guest_line {
	int64_t from, guest, host, drift;  /* from: first guest time of the segment; guest, host: the same moment, ns */
};

static int64_t integer_of(struct json_object *row, const char *key)
{
	return json_object_get_int64(json_object_object_get(row, key));
}

bool guest_time_is_apart(const struct catalog *catalog)
{
	bool has_host = false;
	for (uint32_t i = 0; i < catalog->machines; i++)
		has_host |= catalog->machine[i].kind == MACHINE_HOST;
	return has_host || catalog->machines > 1;
}

/* Reads the segments of a machine's clock, in order of time. The caller frees *lines. Returns their number. */
static size_t read_lines(const struct catalog *catalog, uint32_t machine, struct guest_line **lines)
{
	size_t size = 0, n = 0, cap = 0;
	const char *meta = history_meta(catalog->h, META_PROVENANCE, &size);
	struct json_object *doc = meta ? json_parse(meta, size) : NULL;
	struct json_object *rows = NULL;
	*lines = NULL;
	if (!guest_time_is_apart(catalog))  /* the recording's clock is that of its only machine */
		*ARRAY_PUSH(*lines, n, cap) = (struct guest_line){ 0, 0, 0, 0 };
	else if (doc && json_object_is_type(doc, json_type_object))
		json_object_object_get_ex(doc, "clocks", &rows);
	for (size_t i = 0; rows && json_object_is_type(rows, json_type_array) && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		const char *name = json_object_is_type(row, json_type_object) ?
		                   json_object_get_string(json_object_object_get(row, "guest")) : NULL;
		if (name && strcmp(name, catalog->machine[machine].name) == 0)
			*ARRAY_PUSH(*lines, n, cap) = (struct guest_line){ integer_of(row, "from_ns"), integer_of(row, "ref_guest_ns"),
				integer_of(row, "ref_host_ns"), integer_of(row, "drift") };
	}
	json_object_put(doc);
	return n;
}

static int64_t to_host(const struct guest_line *l, int64_t guest)
{
	const int128 d = (int128)guest - l->guest;
	return clamp64((int128)l->host + d + ((d * l->drift) >> DRIFT_BITS), INT64_MIN, INT64_MAX);
}

static int64_t to_guest(const struct guest_line *l, int64_t host)
{
	const int128 d = (int128)host - l->host, one = (int128)1 << DRIFT_BITS;
	if (one + l->drift <= 0)
		return l->guest;
	/* d / (1 + drift), as d - d * drift / (1 + drift), so that the product fits */
	return clamp64((int128)l->guest + d - d * l->drift / (one + l->drift), INT64_MIN, INT64_MAX);
}

bool guest_time_of(const struct catalog *catalog, uint32_t machine, int64_t host, int64_t *guest)
{
	struct guest_line *lines;
	const size_t n = read_lines(catalog, machine, &lines);
	size_t i = n;
	while (i-- > 1 && to_host(&lines[i], lines[i].from) > host)
		;
	if (n)
		*guest = to_guest(&lines[i], host);
	free(lines);
	return n > 0;
}

int guest_time_parse(const struct catalog *catalog, const char *text, int64_t *host, struct error *err)
{
	const char *at = strchr(text, '@');
	char name[256];
	int64_t begin, end, t;
	if (!at || (size_t)(at - text) >= sizeof name)
		return 0;
	memcpy(name, text, (size_t)(at - text));
	name[at - text] = '\0';
	const int machine = catalog_find_machine(catalog, name);
	if (machine < 0)
		return 0;
	struct guest_line *lines;
	const size_t n = read_lines(catalog, (uint32_t)machine, &lines);
	int status = 1;
	if (n == 0 || !guest_time_of(catalog, (uint32_t)machine, history_begin(catalog->h), &begin) ||
	    !guest_time_of(catalog, (uint32_t)machine, history_end(catalog->h), &end)) {
		status = error_set(err, STATUS_USAGE, "use a time of the host", "%.60s: the clock of this machine is unknown",
		                   text);
	} else if (!time_parse(at + 1, begin, end, &t)) {
		status = error_set(err, STATUS_USAGE, "use MACHINE@12:03:04.5", "%.60s: not a time", text);
	} else {
		size_t i = n;
		while (i-- > 1 && lines[i].from > t)
			;
		*host = to_host(&lines[i], t);
	}
	free(lines);
	return status;
}
