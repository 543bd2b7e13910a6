/* Provenance: JSON rows of traces, machines, clocks and offsets; check for stale histories. */
#include "index/provenance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_field.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/text.h"
#include "index/fingerprint.h"
#include "index/input.h"
#include "index/session.h"

#define META_SESSION "session"
#define PROVENANCE_FORMAT 10  /* increased when the model, the paths or the stored data change, which makes older
                               * histories stale */

static void put_text(struct json_object *o, const char *key, const char *raw)
{
	char text[512];
	json_object_object_add(o, key, json_object_new_string(text_escape(text, sizeof text, raw ? raw : "")));
}

/* Returns input_options_text(), escaped, malloc'ed. The buffer depends on the length, because the text is long for
 * sessions with many guests. */
static char *escaped_options_text(const struct input *in)
{
	char *raw = input_options_text(in);
	size_t size = 8 * strlen(raw) + 1;
	char *text = text_escape(mem_new(size, 1), size, raw);
	free(raw);
	return text;
}

static void put_int(struct json_object *o, const char *key, int64_t v)
{
	json_object_object_add(o, key, json_object_new_int64(v));
}

static void put_real(struct json_object *o, const char *key, double v)
{
	json_object_object_add(o, key, json_object_new_double(v));
}

static void put_error_width(struct json_object *o, const char *key, const struct sync_vm *vm, int64_t t)
{
	int64_t band = clock_map_error_width(&vm->clock, t);
	json_object_object_add(o, key, band < 0 ? NULL : json_object_new_int64(band));
}

/* Returns the report row of one clock segment: values at its start, middle and end, limited to the time for which the
 * clock is known. */
static struct json_object *sync_row(const struct sync_vm *vm, size_t i)
{
	const struct clock_segment *p = &vm->clock.segment[i];
	const struct trace_info *info = trace_info(vm->guest);
	int64_t begin = i == 0 ? info->begin : p->from;
	const struct clock_segment *next = i + 1 < vm->clock.segments ? p + 1 : NULL;
	int64_t end = !next ? info->end : (next->placed ? next->ambiguous_from : next->from) - 1;
	if (info->begin > info->end)
		begin = end = 0;  /* the trace has no events */
	struct json_object *o = json_new_object();
	put_text(o, "guest", vm->name);
	put_text(o, "method", vm->method == SYNC_AUTO ? "both" : sync_method_name[vm->method]);
	put_int(o, "pairs", (int64_t)(p->pairs_ab + p->pairs_cd));
	put_int(o, "rejected", (int64_t)p->rejected);
	put_text(o, "quality", sync_quality_name[p->quality]);
	if (vm->reason != SYNC_REASON_NONE)
		put_text(o, "reason", sync_reason_row[vm->reason].text);
	put_real(o, "alpha_ppm", clock_line_ppm(&p->line));
	put_int(o, "ref_guest_ns", begin);
	put_int(o, "ref_host_ns", clock_line_at(&p->line, begin));
	if (vm->clock.known_from != vm->clock.known_to) {  /* there are no error bounds outside the known time */
		begin = begin > vm->clock.known_from ? begin : vm->clock.known_from;
		end = end < vm->clock.known_to ? end : vm->clock.known_to;
	}
	put_error_width(o, "error_start_ns", vm, begin);
	put_error_width(o, "error_mid_ns", vm, begin + (end - begin) / 2);
	put_error_width(o, "error_end_ns", vm, end);
	json_object_object_add(o, "containment", vm->containment < 0 ? NULL : json_object_new_double(vm->containment));
	json_object_object_add(o, "worst_violation_ns",
	                       vm->worst_violation < 0 ? NULL : json_object_new_int64(vm->worst_violation));
	return o;
}

/* Returns true for the only machine of a recording: there is no clock with which to synchronize its clock. */
static bool is_alone(const struct sync_result *sync, size_t vm)
{
	return sync->vms == 1 && sync->vm[vm].reason == SYNC_REASON_NO_HOST_TRACE;
}

struct json_object *provenance_sync_rows(const struct sync_result *sync)
{
	struct json_object *rows = json_new_array();
	for (size_t i = 0; i < sync->vms; i++)
		for (size_t k = 0; sync->vm[i].guest && !is_alone(sync, i) && k < sync->vm[i].clock.segments; k++)
			json_object_array_add(rows, sync_row(&sync->vm[i], k));
	return rows;
}

/* Returns the exact lines that convert the guests' times to the host's clock. */
static struct json_object *clock_rows(const struct sync_result *sync)
{
	struct json_object *rows = json_new_array();
	for (size_t i = 0; i < sync->vms; i++) {
		const struct sync_vm *vm = &sync->vm[i];
		for (size_t k = 0; vm->guest && k < vm->clock.segments; k++) {
			const struct clock_segment *p = &vm->clock.segment[k];
			struct json_object *o = json_new_object();
			put_text(o, "guest", vm->name);
			put_int(o, "from_ns", p->from);
			put_int(o, "ref_guest_ns", p->line.ref_guest);
			put_int(o, "ref_host_ns", p->line.ref_host);
			put_int(o, "drift", p->line.drift);
			json_object_array_add(rows, o);
		}
	}
	return rows;
}

/* tsc_millihertz: of the specification. */
static struct json_object *trace_row(const struct trace *t, bool is_host, uint64_t tsc_millihertz)
{
	const struct trace_info *info = trace_info(t);
	struct json_object *o = json_new_object();
	put_text(o, "machine", info->machine);
	put_text(o, "role", is_host ? "host" : "guest");
	put_text(o, "hostname", info->hostname);
	put_text(o, "vm_id", info->vm_id);
	put_text(o, "dir", info->dir);
	put_text(o, "tracer", info->tracer);
	put_text(o, "layout", info->layout);
	put_text(o, "uuid", info->uuid);
	json_object_object_add(o, "begin", info->events ? json_object_new_int64(info->begin) : NULL);
	json_object_object_add(o, "end", info->events ? json_object_new_int64(info->end) : NULL);
	put_int(o, "events", (int64_t)info->events);
	put_int(o, "lost", (int64_t)info->lost);
	put_int(o, "uncounted", (int64_t)info->uncounted);
	put_int(o, "bytes", (int64_t)info->bytes);
	put_int(o, "cpus", info->cpus);
	put_int(o, "realtime_error_ns", info->realtime_error);
	json_object_object_add(o, "monotonic", json_object_new_boolean(info->is_monotonic));
	if (tsc_millihertz)
		put_int(o, "tsc_millihertz", (int64_t)tsc_millihertz);
	return o;
}

static struct json_object *vm_row(const struct sync_result *sync, const struct sync_vm *vm)
{
	struct json_object *o = json_new_object(), *vcpus = json_new_array();
	put_text(o, "vm", vm->name);
	put_text(o, "parent", vm->parent ? sync->vm[vm->parent - 1].name : sync->host ? "host" : "");
	put_int(o, "host_pid", vm->host_pid);
	put_text(o, "host_comm", vm->host_comm);
	json_object_object_add(o, "traced", json_object_new_boolean(vm->guest != NULL));
	for (size_t i = 0; i < vm->vcpus; i++) {
		struct json_object *v = json_new_object();
		put_int(v, "vcpu", vm->vcpu[i].number);
		put_int(v, "host_tid", vm->vcpu[i].host_tid);
		put_text(v, "evidence", vcpu_evidence_name[vm->vcpu[i].evidence]);
		if (vm->vcpu[i].moved) {
			put_int(v, "host_pid", vm->migrated_pid);
			put_text(v, "host_comm", vm->migrated_comm);
		}
		json_object_array_add(vcpus, v);
	}
	json_object_object_add(o, "vcpus", vcpus);
	return o;
}

struct json_object *provenance_manual_offsets(const struct input *in)
{
	struct json_object *list = json_new_array();
	for (size_t i = 0; i < in->hints; i++) {
		if (in->hint[i].manual_offset == 0)
			continue;
		struct json_object *o = json_new_object();
		put_text(o, "guest", in->hint[i].guest);
		put_int(o, "nudge_ns", in->hint[i].manual_offset);
		json_object_array_add(list, o);
	}
	return list;
}

static int store_session(struct history_builder *b, const char *path, const struct input *in,
                         struct trace *const *trace, const struct trace *host)
{
	char *text = session_text(in, trace, host, path, NULL);
	int rc = text ? history_meta_set(b, META_SESSION, text, strlen(text)) : 0;
	free(text);
	return rc;
}

static int store_notes(struct history_builder *b, const struct notes *notes)
{
	size_t size;
	char *bytes = notes_pack(notes, &size);
	int rc = history_meta_set(b, PROVENANCE_NOTES, bytes, size);
	free(bytes);
	return rc;
}

bool provenance_notes(const struct history *h, struct notes *notes)
{
	size_t size;
	const void *bytes = history_meta(h, PROVENANCE_NOTES, &size);
	return !bytes || notes_unpack(notes, bytes, size);
}

int provenance_store(struct history_builder *b, const char *path, const struct input *in, const struct loaded *l)
{
	const struct sync_result *sync = &l->sync;
	struct json_object *doc = json_new_object(), *list;
	put_int(doc, "format", PROVENANCE_FORMAT);
	put_text(doc, "tool", "stealscope " PACKAGE_VERSION);
	char *options_text = escaped_options_text(in);
	json_object_object_add(doc, "shape", json_object_new_string(options_text));
	free(options_text);
	json_object_object_add(doc, "paper_states", json_object_new_boolean(in->paper_states));
	json_object_object_add(doc, "nudges", provenance_manual_offsets(in));
	json_object_object_add(doc, "files", json_object_get(l->files));
	list = json_new_array();
	for (size_t i = 0; i < in->specs; i++)
		json_object_array_add(list, trace_row(l->trace[i], l->trace[i] == sync->host, in->spec[i].tsc_millihertz));
	json_object_object_add(doc, "traces", list);
	list = json_new_array();
	for (size_t i = 0; i < sync->vms; i++)
		json_object_array_add(list, vm_row(sync, &sync->vm[i]));
	json_object_object_add(doc, "vms", list);
	json_object_object_add(doc, "sync", provenance_sync_rows(sync));
	json_object_object_add(doc, "clocks", clock_rows(sync));
	const char *text = json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PLAIN);
	int rc = history_meta_set(b, PROVENANCE_KEY, text, strlen(text));
	json_object_put(doc);
	if (rc == 0)
		rc = store_notes(b, &l->notes);
	return rc ? rc : store_session(b, path, in, l->trace, sync->host);
}

struct json_object *provenance_load(const struct history *h, struct error *err)
{
	size_t size;
	const void *text = history_meta(h, PROVENANCE_KEY, &size);
	struct json_object *doc = text ? json_parse(text, size) : NULL;
	if (!doc)
		error_set(err, STATUS_INPUT, "rebuild it with stealscope index", "%s: the history does not record its traces",
		          history_file(h));
	return doc;
}

uint64_t provenance_traces_hash(const struct history *h)
{
	static const char *const facts[] = { "uuid", "begin", "end", "bytes" };
	struct json_object *doc = provenance_load(h, NULL), *rows = json_member_array(doc, "traces");
	uint64_t all = 0;
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		uint64_t one = HASH_BEGIN;
		for (size_t k = 0; k < sizeof facts / sizeof *facts; k++) {
			const char *s = json_object_get_string(json_object_object_get(row, facts[k]));
			one = hash_text(hash_text(one, s ? s : ""), "\n");
		}
		all += one;  /* the sum does not depend on the order */
	}
	json_object_put(doc);
	return all;
}

int provenance_input(const struct history *h, struct input *in, struct error *err)
{
	size_t size;
	const char *text = history_meta(h, META_SESSION, &size);
	*in = (struct input){ 0 };
	if (!text)
		return error_set(err, STATUS_INPUT, "rebuild it with stealscope index; names and paths must be UTF-8",
		                 "%s: the history does not record the location of its traces", history_file(h));
	struct json_object *doc = provenance_load(h, err);
	if (!doc)
		return -1;
	in->paper_states = json_object_get_boolean(json_object_object_get(doc, "paper_states"));
	json_object_put(doc);
	return session_parse(in, text, size, history_file(h), err) ? -1 : input_finish(in, err);
}

int provenance_stale(const struct history *h, const struct input *in, char *why, size_t size, struct error *err)
{
	if (input_is_live(in)) {
		snprintf(why, size, "live sessions are always read again");
		return 1;
	}
	struct json_object *doc = provenance_load(h, NULL);
	struct json_object *files = json_member_array(doc, "files");
	if (!files || json_member_int(doc, "format", -1) != PROVENANCE_FORMAT) {
		snprintf(why, size, "it was built by another version of stealscope");
		json_object_put(doc);
		return 1;
	}
	int rc = 0;
	char *options_text = escaped_options_text(in);
	if (strcmp(options_text, json_member_text(doc, "shape")) != 0) {
		snprintf(why, size, "it was built with other options (%s)", json_member_text(doc, "shape"));
		rc = 1;
	} else {
		struct json_object *now = fingerprint_make(in, err);
		rc = now ? fingerprint_differs(files, now, why, size) : -1;
		json_object_put(now);
	}
	free(options_text);
	json_object_put(doc);
	return rc;
}
