/* Fills the tables machine, cpu, thread and request. */
#include "base/base.h"
#include "base/json_field.h"
#include "export/fill.h"
#include "latency/latency.h"

static const char *const kind_name[] = { [MACHINE_HOST] = "host", [MACHINE_VM] = "vm", [MACHINE_CONTAINER] = "container" };

/* Returns the UUID of a machine's trace; null: not traced, or without UUID. */
static struct table_cell machine_uuid(const struct filler *f, uint32_t machine)
{
	bool host = f->catalog->machine[machine].kind == MACHINE_HOST;
	struct json_object *rows = json_member_array(f->doc, "traces");
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		bool is_host = strcmp(json_member_text(row, "role"), "host") == 0;
		if (host ? is_host : !is_host && strcmp(json_member_text(row, "machine"), f->machine[machine]) == 0)
			return *json_member_text(row, "uuid") ? CELL_TEXT(json_member_text(row, "uuid")) : CELL_NONE;
	}
	return CELL_NONE;
}

int fill_machines(struct filler *f)
{
	for (uint32_t i = 0; i < f->catalog->machines; i++) {
		const struct catalog_machine *m = &f->catalog->machine[i];
		if (fill_row(f, (struct table_cell[MACHINE_FIELD_COUNT]){
			[COL_MACHINE_NAME] = CELL_TEXT(f->machine[i]), [COL_MACHINE_SORT] = CELL_TEXT(kind_name[m->kind]),
			[COL_MACHINE_BELOW] = fill_machine(f, m->parent), [COL_MACHINE_UUID] = machine_uuid(f, i) }))
			return -1;
	}
	return 0;
}

/* Finds the first value of an attribute that is not null; HISTORY_NULL: none. Returns -1 on failure. */
static int first_value(struct filler *f, uint32_t attr, int64_t *value)
{
	struct interval iv = { .end = history_begin(f->h) - 1 };
	*value = HISTORY_NULL;
	while (attr != HISTORY_NONE && *value == HISTORY_NULL && iv.end < history_end(f->h)) {
		if (history_stab(f->h, attr, iv.end + 1, &iv, f->err))
			return -1;
		*value = iv.value;
	}
	return 0;
}

int fill_cpus(struct filler *f)
{
	for (uint32_t i = 0; i < f->catalog->cpus; i++) {
		int64_t tid;
		const struct catalog_cpu *cpu = &f->catalog->cpu[i];
		if (first_value(f, cpu->host_thread, &tid) || fill_row(f, (struct table_cell[CPU_FIELD_COUNT]){
			[COL_CPU_MACHINE] = CELL_TEXT(f->machine[cpu->machine]), [COL_CPU_NUMBER] = CELL_INT(cpu->number),
			[COL_CPU_HOST_TID] = fill_number(tid) }))
			return -1;
	}
	return 0;
}

int fill_threads(struct filler *f)
{
	char name[FILL_TEXT], process[FILL_TEXT];
	for (uint32_t i = 0; i < f->catalog->threads; i++) {
		const struct catalog_thread *th = &f->catalog->thread[i];
		int64_t start, end, pid;
		int has_life = catalog_lifetime(f->catalog, &(struct target){ TARGET_THREAD, i }, &start, &end, f->err);
		if (has_life < 0 || first_value(f, th->pid, &pid))
			return -1;
		int leader = pid < 0 || pid > INT32_MAX ? -1 : catalog_find_thread(f->catalog, th->machine, (int32_t)pid);
		if (leader >= 0)
			text_escape(process, sizeof process, catalog_longest_name(f->catalog, (uint32_t)leader));
		if (fill_row(f, (struct table_cell[THREAD_FIELD_COUNT]){
			[COL_THREAD_MACHINE] = CELL_TEXT(f->machine[th->machine]), [COL_THREAD_TID] = CELL_INT(th->tid),
			[COL_THREAD_START] = has_life ? CELL_INT(start) : CELL_NONE,
			[COL_THREAD_END] = has_life ? CELL_INT(end) : CELL_NONE,
			[COL_THREAD_TITLE] = CELL_TEXT(text_escape(name, sizeof name, catalog_longest_name(f->catalog, i))),
			[COL_THREAD_PROCESS_ID] = fill_number(pid),
			[COL_THREAD_PROCESS] = leader >= 0 ? CELL_TEXT(process) : CELL_NONE }))
			return -1;
	}
	return 0;
}

int fill_requests(struct filler *f)
{
	struct requests all;
	struct notes notes = { 0 };
	char machine[FILL_TEXT], id[FILL_TEXT];
	const struct requests_options options = { .from = 1, .to = 0, .culprits = true };
	int rc = requests_read(f->catalog, &options, &all, &notes, f->err);
	for (size_t i = 0; rc == 0 && i < all.len; i++) {
		const struct request *r = &all.row[i];
		rc = fill_row(f, (struct table_cell[REQUEST_FIELD_COUNT]){
			[COL_REQUEST_MACHINE] = CELL_TEXT(text_escape(machine, sizeof machine, r->machine)),
			[COL_REQUEST_ID] = CELL_TEXT(text_escape(id, sizeof id, r->id)), [COL_REQUEST_TID] = fill_number(r->tid),
			[COL_REQUEST_TS] = CELL_INT(r->start), [COL_REQUEST_DUR] = CELL_INT(request_latency(r)),
			[COL_REQUEST_LOW] = CELL_INT(r->low), [COL_REQUEST_HIGH] = CELL_INT(r->high),
			[COL_REQUEST_CULPRIT] = r->culprit ? CELL_TEXT(r->culprit) : CELL_NONE });
	}
	requests_release(&all);
	notes_release(&notes);
	return rc;
}
