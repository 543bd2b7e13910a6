/* Writes session files: whole files, and manual offsets in a file that the user wrote. */
#include "base/base.h"
#include "base/file_open.h"
#include "base/atomic_file.h"
#include "base/yaml_file.h"
#include "base/yaml_out.h"
#include "index/session.h"

#define REMEDY "see stealscope-session(5)"

/* ---- A whole file */

static void put_vcpus(struct yaml_out *o, int map, const struct sync_hint *hint)
{
	const int vcpus = hint->vcpus ? yaml_out_braces(o, map, "vcpus") : 0;
	for (size_t i = 0; i < hint->vcpus; i++) {
		char number[16];
		snprintf(number, sizeof number, "%u", hint->vcpu[i].number);
		yaml_out_number(o, vcpus, number, hint->vcpu[i].host_tid);
	}
}

static void put_hint(struct yaml_out *o, int map, const struct sync_hint *hint)
{
	char text[TIME_TEXT];
	yaml_out_text(o, map, "parent", hint->parent);
	if (hint->has_offset)
		yaml_out_text(o, map, "offset", time_exact(text, hint->offset));
	if (hint->manual_offset)
		yaml_out_text(o, map, "nudge", time_exact(text, hint->manual_offset));
	if (hint->has_tsc) {
		const int tsc = yaml_out_braces(o, map, "tsc");
		yaml_out_number(o, tsc, "offset", hint->tsc_offset);
		yaml_out_count(o, tsc, "ratio", hint->tsc_ratio);
		yaml_out_number(o, tsc, "bits", hint->tsc_bits);
	}
	put_vcpus(o, map, hint);
}

/* Returns the directory of a session file at `path`, with a slash at its end, malloc'ed. */
static char *dir_with_slash(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = mem_printf("%.*s", slash ? (int)(slash - path + 1) : 2, slash ? path : "./");
	char *real = realpath(dir, NULL), *whole = mem_printf("%s%s", real ? real : dir, real && real[1] ? "/" : "");
	free(dir);
	free(real);
	return whole;
}

/* Returns the path, malloc'ed: relative if it is in or below the directory, otherwise absolute. */
static char *relative_path(const char *dir, const char *path)
{
	const char *machine = path + trace_path_length(path);  /* "#MACHINE", or "" */
	char *file = mem_printf("%.*s", (int)(machine - path), path), *real = realpath(file, NULL), *found = NULL;
	size_t n = strlen(dir);
	if (real && strncmp(real, dir, n) == 0)
		found = mem_printf("%s%s", real + n, machine);
	else if (real && strncmp(real, dir, n - 1) == 0 && real[n - 1] == '\0')
		found = mem_dup(".");
	else
		found = mem_printf("%s%s", real ? real : file, machine);
	free(real);
	free(file);
	return found;
}

static const struct sync_hint *find_hint(const struct input *in, const char *name)
{
	for (size_t i = 0; i < in->hints; i++)
		if (strcmp(in->hint[i].guest, name) == 0)
			return &in->hint[i];
	return NULL;
}

/* Writes one machine as member `key` of parent, or as an element of the list parent (key NULL). */
static void put_machine(struct yaml_out *o, int parent, const char *key, const struct input *in,
                        const struct trace_spec *spec, const char *base)
{
	const int map = yaml_out_map(o, parent, key);
	char *dir = relative_path(base, spec->dir);
	char *layout = spec->layout && strchr(spec->layout, '/') ? realpath(spec->layout, NULL) : mem_dup(spec->layout);
	yaml_out_text(o, map, "name", spec->name);
	yaml_out_text(o, map, "dir", dir);
	yaml_out_text(o, map, "layout", layout);
	const struct sync_hint *hint = find_hint(in, spec->name);
	if (hint && spec->role == ROLE_GUEST)
		put_hint(o, map, hint);
	if (in->control_groups.is_guest != (spec->role == ROLE_HOST))
		control_groups_write(o, map, &in->control_groups);
	if (spec->role == ROLE_HOST) {
		topology_put(o, map, &in->topology);
	} else {
		topology_put_memory(o, map, &in->topology, spec->name);
	}
	free(dir);
	free(layout);
}

/* Traces after input_resolve(), and after loading if trace is not NULL. */
struct resolved_traces {
	const struct input *in;
	struct trace *const *trace;  /* [in->specs]; NULL: the specifications contain names and roles */
	const struct trace *host;
};

/* Returns specification i with the name and role of its trace. */
static struct trace_spec named_spec(const struct resolved_traces *f, size_t i)
{
	struct trace_spec spec = f->in->spec[i];
	if (f->trace) {
		spec.name = trace_info(f->trace[i])->machine;
		spec.role = f->trace[i] == f->host ? ROLE_HOST : ROLE_GUEST;
	}
	return spec;
}

/* Writes the guests without a trace, for which the user specified vCPU threads. */
static void put_untraced(struct yaml_out *o, int guests, const struct resolved_traces *f)
{
	const struct input *in = f->in;
	for (size_t i = 0; i < in->hints; i++) {
		bool traced = false;
		for (size_t k = 0; k < in->specs; k++)
			traced |= strcmp(named_spec(f, k).name, in->hint[i].guest) == 0;
		if (traced || in->hint[i].vcpus == 0)
			continue;
		const int map = yaml_out_map(o, guests, NULL);
		yaml_out_text(o, map, "name", in->hint[i].guest);
		put_hint(o, map, &in->hint[i]);
		topology_put_memory(o, map, &in->topology, in->hint[i].guest);
	}
}

static void put_domains(struct yaml_out *o, const struct input *in)
{
	const int map = yaml_out_braces(o, YAML_OUT_ROOT, "domains");
	for (size_t i = 0; i < in->domains; i++) {
		char id[16];
		snprintf(id, sizeof id, "%u", (unsigned)in->domain[i].id);
		yaml_out_text(o, map, id, in->domain[i].name);
	}
}

static void put_machines(struct yaml_out *o, const struct resolved_traces *f, const char *dir)
{
	const struct input *in = f->in;
	int guests = 0;
	yaml_out_text(o, YAML_OUT_ROOT, "sync", in->sync);
	if (in->sync_options.tsc_hz)
		yaml_out_number(o, YAML_OUT_ROOT, "tsc_hz", in->sync_options.tsc_hz);
	if (in->domains)
		put_domains(o, in);
	for (int for_guests = 0; for_guests < 2; for_guests++) {
		if (for_guests)
			guests = yaml_out_list(o, YAML_OUT_ROOT, "guests");
		for (size_t i = 0; i < in->specs; i++) {
			const struct trace_spec spec = named_spec(f, i);
			if ((spec.role != ROLE_HOST) == for_guests)
				put_machine(o, for_guests ? guests : YAML_OUT_ROOT, for_guests ? NULL : "host", in, &spec, dir);
		}
	}
	put_untraced(o, guests, f);
}

char *session_text(const struct input *in, struct trace *const *trace, const struct trace *host, const char *path,
                   struct error *err)
{
	const struct resolved_traces found = { in, trace, host };
	struct yaml_out *o = yaml_out_new();
	char *dir = dir_with_slash(path);
	put_machines(o, &found, dir);
	free(dir);
	char *text = yaml_out_end(o);
	if (!text)
		error_set(err, STATUS_INPUT, "rename the machine or directory",
		          "%s: YAML cannot contain a name or path of these traces that is not UTF-8", path);
	return text;
}

/* ---- Offset within an existing file */

struct session_text {
	char *bytes;
	size_t size, cap;
};

/* Returns the byte offset of a character; libyaml counts characters, and starts after the byte order mark. */
static size_t byte_offset(const struct session_text *t, size_t character)
{
	size_t at = t->size >= 3 && memcmp(t->bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	for (; character > 0 && at < t->size; character--)
		do
			at++;
		while (at < t->size && ((unsigned char)t->bytes[at] & 0xc0) == 0x80);
	return at;
}

static void text_replace(struct session_text *t, size_t from, size_t to, const char *by)
{
	char *whole = mem_printf("%.*s%s%s", (int)from, t->bytes, by, t->bytes + to);
	free(t->bytes);
	*t = (struct session_text){ whole, strlen(whole), strlen(whole) + 1 };
}

/* Inserts the offset: after the name in a flow mapping, otherwise on a line of its own with the name's indentation. */
static void insert_offset(struct session_text *t, const yaml_node_t *map, const yaml_node_t *key, const yaml_node_t *name,
                          const char *manual_offset)
{
	size_t at = byte_offset(t, name->end_mark.index);
	char *line;
	if (map->data.mapping.style == YAML_FLOW_MAPPING_STYLE) {
		line = mem_printf(", nudge: %s", manual_offset);
	} else {
		at += strcspn(t->bytes + at, "\r\n");
		line = mem_printf("%s%*snudge: %s", strstr(t->bytes, "\r\n") ? "\r\n" : "\n", (int)key->start_mark.column, "",
		                  manual_offset);
	}
	text_replace(t, at, at, line);
	free(line);
}

/* Returns the guest's mapping, and the key and value nodes of its name; NULL: no such guest. */
static yaml_node_t *find_guest(struct yaml_file *f, const char *guest, yaml_node_t **key, yaml_node_t **name)
{
	yaml_node_t *map, *guests = yaml_member(f, yaml_root(f), "guests");
	for (size_t i = 0; yaml_item(f, guests, i, &map); i++) {
		for (size_t k = 0; yaml_pair(f, map, k, key, name); k++) {
			const char *word = yaml_scalar(*key), *text = yaml_scalar(*name);
			if (word && text && strcmp(word, "name") == 0 && strcmp(text, guest) == 0)
				return map;
		}
	}
	return NULL;
}

/* Sets the offset of one guest. Returns 1: it has this value already; 0: the text was changed; -1: failure. */
static int set_manual_offset(struct session_text *t, const char *path, const struct sync_hint *hint, struct error *err)
{
	struct yaml_file f;
	yaml_node_t *key, *name, *map;
	if (yaml_file_parse(&f, t->bytes, t->size, path, REMEDY, err))
		return -1;
	int rc = 0;
	int64_t ns = 0;
	char manual_offset[TIME_TEXT];
	time_exact(manual_offset, hint->manual_offset);
	map = find_guest(&f, hint->guest, &key, &name);
	const yaml_node_t *old = map ? yaml_member(&f, map, "nudge") : NULL;
	const char *text = yaml_scalar(old);
	bool same = (!old || (text && time_parse_offset(text, &ns))) && ns == hint->manual_offset;
	if (same)
		rc = 1;
	else if (!map)
		rc = error_set(err, STATUS_INPUT, "use :offset save FILE to write another file",
		               "%s: does not contain the guest %s", path, hint->guest);
	else if (old)
		text_replace(t, byte_offset(t, old->start_mark.index), byte_offset(t, old->end_mark.index), manual_offset);
	else
		insert_offset(t, map, key, name, manual_offset);
	yaml_file_release(&f);
	return rc;
}

static int set_all_offsets(struct session_text *t, const char *path, const struct input *in, struct error *err)
{
	for (size_t i = 0; i < in->hints; i++) {
		const struct sync_hint *hint = &in->hint[i];
		char manual_offset[TIME_TEXT];
		int done = set_manual_offset(t, path, hint, err);
		/* Checks the result, because not every YAML syntax of a mapping is supported. */
		if (done == 0 && set_manual_offset(t, path, hint, NULL) <= 0)
			done = error_set(err, STATUS_INPUT, "edit the file yourself, or use :offset save FILE",
			                 "%s: cannot insert \"nudge: %s\" for guest %s", path,
			                 time_exact(manual_offset, hint->manual_offset), hint->guest);
		if (done < 0)
			return -1;
	}
	return 0;
}

static int read_text(struct session_text *t, const char *path, struct error *err)
{
	FILE *f = file_open(path);
	if (!f)
		return error_system(err, NULL, "%s", path);
	*t = (struct session_text){ mem_new(YAML_FILE_MAX + 2, 1), 0, YAML_FILE_MAX + 2 };
	t->size = fread(t->bytes, 1, YAML_FILE_MAX + 1, f);
	int rc = 0;
	if (ferror(f))
		rc = error_system(err, NULL, "%s", path);
	else if (t->size > YAML_FILE_MAX || strlen(t->bytes) != t->size)
		rc = error_set(err, STATUS_INPUT, "use :offset save FILE to write another file",
		               "%s: not an editable text file", path);
	fclose(f);
	return rc;
}

int session_set_manual_offsets(const char *path, const struct input *in, struct error *err)
{
	struct session_text text = { 0 };
	struct save save;
	int rc = read_text(&text, path, err);
	if (rc == 0)
		rc = set_all_offsets(&text, path, in, err);
	if (rc == 0 && (rc = atomic_file_begin(&save, path, err)) == 0) {
		fwrite(text.bytes, 1, text.size, save.f);
		rc = atomic_file_end(&save, 0, err);
	}
	free(text.bytes);
	return rc;
}
