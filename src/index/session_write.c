/* Session files written: whole ones, and the nudges within one that a person wrote. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_open.h"
#include "base/mem.h"
#include "base/atomic_file.h"
#include "base/timefmt.h"
#include "base/yaml_file.h"
#include "base/yaml_out.h"
#include "index/session.h"

#define MEND "see stealscope-session(5)"

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
	if (hint->nudge)
		yaml_out_text(o, map, "nudge", time_exact(text, hint->nudge));
	if (hint->has_tsc) {
		const int tsc = yaml_out_braces(o, map, "tsc");
		yaml_out_number(o, tsc, "offset", hint->tsc_offset);
		yaml_out_count(o, tsc, "ratio", hint->tsc_ratio);
		yaml_out_number(o, tsc, "bits", hint->tsc_bits);
	}
	put_vcpus(o, map, hint);
}

/* The folder that a session file at `path` lies in, with a slash at its end. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = mem_printf("%.*s", slash ? (int)(slash - path + 1) : 2, slash ? path : "./");
	char *real = realpath(folder, NULL), *whole = mem_printf("%s%s", real ? real : folder, real && real[1] ? "/" : "");
	free(folder);
	free(real);
	return whole;
}

/* How a file in that folder names the place. */
static char *place_in(const char *folder, const char *place)
{
	char *real = realpath(place, NULL), *found = NULL;
	size_t n = strlen(folder);
	if (real && strncmp(real, folder, n) == 0)
		found = mem_dup(real + n);
	else if (real && strncmp(real, folder, n - 1) == 0 && real[n - 1] == '\0')
		found = mem_dup(".");
	else
		found = mem_dup(real ? real : place);
	free(real);
	return found;
}

static const struct sync_hint *hint_of(const struct input *in, const char *name)
{
	for (size_t i = 0; i < in->hints; i++)
		if (strcmp(in->hint[i].guest, name) == 0)
			return &in->hint[i];
	return NULL;
}

/* parent, key: where it goes. */
static void put_machine(struct yaml_out *o, int parent, const char *key, const struct input *in,
                        const struct trace_spec *spec, const char *folder)
{
	const int map = yaml_out_map(o, parent, key);
	char *dir = place_in(folder, spec->dir);
	char *layout = spec->layout && strchr(spec->layout, '/') ? realpath(spec->layout, NULL) : mem_dup(spec->layout);
	yaml_out_text(o, map, "name", spec->name);
	yaml_out_text(o, map, "dir", dir);
	yaml_out_text(o, map, "layout", layout);
	const struct sync_hint *hint = hint_of(in, spec->name);
	if (hint && spec->role == ROLE_GUEST)
		put_hint(o, map, hint);
	free(dir);
	free(layout);
}

/* What the traces turned out to be. */
struct found {
	const struct input *in;
	struct trace *const *trace;  /* NULL: the specifications say it */
	const struct trace *host;
};

/* A specification, with the name and role that its machine was found to have. */
static struct trace_spec spec_of(const struct found *f, size_t i)
{
	struct trace_spec spec = f->in->spec[i];
	if (f->trace) {
		spec.name = trace_info(f->trace[i])->machine;
		spec.role = f->trace[i] == f->host ? ROLE_HOST : ROLE_GUEST;
	}
	return spec;
}

/* Guests that nobody traced: their vCPU threads are known by hand. */
static void put_untraced(struct yaml_out *o, int guests, const struct found *f)
{
	const struct input *in = f->in;
	for (size_t i = 0; i < in->hints; i++) {
		bool traced = false;
		for (size_t k = 0; k < in->specs; k++)
			traced |= strcmp(spec_of(f, k).name, in->hint[i].guest) == 0;
		if (traced || in->hint[i].vcpus == 0)
			continue;
		const int map = yaml_out_map(o, guests, NULL);
		yaml_out_text(o, map, "name", in->hint[i].guest);
		put_hint(o, map, &in->hint[i]);
	}
}

static void put_all(struct yaml_out *o, const struct found *f, const char *folder)
{
	const struct input *in = f->in;
	int guests = 0;
	yaml_out_text(o, YAML_OUT_ROOT, "sync", in->sync);
	for (int others = 0; others < 2; others++) {
		if (others)
			guests = yaml_out_list(o, YAML_OUT_ROOT, "guests");
		for (size_t i = 0; i < in->specs; i++) {
			const struct trace_spec spec = spec_of(f, i);
			if ((spec.role != ROLE_HOST) == others)
				put_machine(o, others ? guests : YAML_OUT_ROOT, others ? NULL : "host", in, &spec, folder);
		}
	}
	put_untraced(o, guests, f);
}

char *session_text(const struct input *in, struct trace *const *trace, const struct trace *host, const char *path,
                   struct error *err)
{
	const struct found found = { in, trace, host };
	struct yaml_out *o = yaml_out_new();
	char *folder = folder_of(path);
	put_all(o, &found, folder);
	free(folder);
	char *text = yaml_out_end(o);
	if (!text)
		error_set(err, STATUS_INPUT, "rename it", "%s: a name or a path of these traces is not UTF-8: YAML cannot hold it",
		          path);
	return text;
}

/* ---- One line within a file */

struct session_text {
	char *bytes;
	size_t size, cap;
};

/* Where a character stands: libyaml counts characters, behind the mark of the byte order. */
static size_t byte_of(const struct session_text *t, size_t character)
{
	size_t at = t->size >= 3 && memcmp(t->bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	for (; character > 0 && at < t->size; character--)
		do
			at++;
		while (at < t->size && ((unsigned char)t->bytes[at] & 0xc0) == 0x80);
	return at;
}

static void replace(struct session_text *t, size_t from, size_t to, const char *by)
{
	char *whole = mem_printf("%.*s%s%s", (int)from, t->bytes, by, t->bytes + to);
	free(t->bytes);
	*t = (struct session_text){ whole, strlen(whole), strlen(whole) + 1 };
}

/* In a flow mapping behind the name; else on a line of its own, indented as the name is. */
static void insert(struct session_text *t, const yaml_node_t *map, const yaml_node_t *key, const yaml_node_t *name,
                   const char *nudge)
{
	size_t at = byte_of(t, name->end_mark.index);
	char *line;
	if (map->data.mapping.style == YAML_FLOW_MAPPING_STYLE) {
		line = mem_printf(", nudge: %s", nudge);
	} else {
		at += strcspn(t->bytes + at, "\r\n");
		line = mem_printf("%s%*snudge: %s", strstr(t->bytes, "\r\n") ? "\r\n" : "\n", (int)key->start_mark.column, "",
		                  nudge);
	}
	replace(t, at, at, line);
	free(line);
}

/* The guest's mapping, with the key and the value of its name. */
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

/* 1: the nudge is what it should be; 0: it was not, and the text is another now; -1: no such guest. */
static int set_nudge(struct session_text *t, const char *path, const struct sync_hint *hint, struct error *err)
{
	struct yaml_file f;
	yaml_node_t *key, *name, *map;
	if (yaml_file_parse(&f, t->bytes, t->size, path, MEND, err))
		return -1;
	int rc = 0;
	int64_t ns = 0;
	char nudge[TIME_TEXT];
	time_exact(nudge, hint->nudge);
	map = find_guest(&f, hint->guest, &key, &name);
	const yaml_node_t *old = map ? yaml_member(&f, map, "nudge") : NULL;
	const char *text = yaml_scalar(old);
	bool same = (!old || (text && time_parse_offset(text, &ns))) && ns == hint->nudge;
	if (same)
		rc = 1;
	else if (!map)
		rc = error_set(err, STATUS_INPUT, ":offset save FILE writes another", "%s: does not name %s", path, hint->guest);
	else if (old)
		replace(t, byte_of(t, old->start_mark.index), byte_of(t, old->end_mark.index), nudge);
	else
		insert(t, map, key, name, nudge);
	yaml_file_release(&f);
	return rc;
}

static int edit(struct session_text *t, const char *path, const struct input *in, struct error *err)
{
	for (size_t i = 0; i < in->hints; i++) {
		const struct sync_hint *hint = &in->hint[i];
		char nudge[TIME_TEXT];
		int done = set_nudge(t, path, hint, err);
		/* Is it there now?  YAML has more ways to write a mapping than are known here. */
		if (done == 0 && set_nudge(t, path, hint, NULL) <= 0)
			done = error_set(err, STATUS_INPUT, "write it there yourself, or :offset save FILE",
			                 "%s: no place is found for \"nudge: %s\" of %s", path, time_exact(nudge, hint->nudge),
			                 hint->guest);
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
	*t = (struct session_text){ mem_new(YAML_FILE_LONGEST + 2, 1), 0, YAML_FILE_LONGEST + 2 };
	t->size = fread(t->bytes, 1, YAML_FILE_LONGEST + 1, f);
	int rc = 0;
	if (ferror(f))
		rc = error_system(err, NULL, "%s", path);
	else if (t->size > YAML_FILE_LONGEST || strlen(t->bytes) != t->size)
		rc = error_set(err, STATUS_INPUT, ":offset save FILE writes another", "%s: not a text that can be edited", path);
	fclose(f);
	return rc;
}

int session_set_nudges(const char *path, const struct input *in, struct error *err)
{
	struct session_text text = { 0 };
	struct save save;
	int rc = read_text(&text, path, err);
	if (rc == 0)
		rc = edit(&text, path, in, err);
	if (rc == 0 && (rc = save_begin(&save, path, err)) == 0) {
		fwrite(text.bytes, 1, text.size, save.f);
		rc = save_end(&save, 0, err);
	}
	free(text.bytes);
	return rc;
}
