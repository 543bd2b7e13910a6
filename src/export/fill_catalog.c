/* Machines, CPUs, threads, requests. */
#include <string.h>

#include "base/json_field.h"
#include "base/text.h"
#include "export/fill.h"
#include "latency/latency.h"

static const char *const kind_name[] = { [MACHINE_HOST] = "host", [MACHINE_VM] = "vm", [MACHINE_CONTAINER] = "container" };

/* The UUID of the trace of a machine; absent: it has none. */
static struct table_cell uuid_of(const struct filler *f, uint32_t machine)
{
	bool host = f->topo->machine[machine].kind == MACHINE_HOST;
	struct json_object *rows = field_array(f->doc, "traces");
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		bool is_host = strcmp(field_text(row, "role"), "host") == 0;
		if (host ? is_host : !is_host && strcmp(field_text(row, "machine"), f->machine[machine]) == 0)
			return *field_text(row, "uuid") ? CELL_TEXT(field_text(row, "uuid")) : CELL_NONE;
	}
	return CELL_NONE;
}

int fill_machines(struct filler *f)
{
	for (uint32_t i = 0; i < f->topo->machines; i++) {
		const struct topo_machine *m = &f->topo->machine[i];
		if (fill_row(f, (struct table_cell[MACHINE_FIELD_COUNT]){
			[COL_MACHINE_NAME] = CELL_TEXT(f->machine[i]), [COL_MACHINE_SORT] = CELL_TEXT(kind_name[m->kind]),
			[COL_MACHINE_BELOW] = fill_machine(f, m->parent), [COL_MACHINE_UUID] = uuid_of(f, i) }))
			return -1;
	}
	return 0;
}

/* The first value of an attribute. */
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
	for (uint32_t i = 0; i < f->topo->cpus; i++) {
		int64_t tid;
		const struct topo_cpu *cpu = &f->topo->cpu[i];
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
	for (uint32_t i = 0; i < f->topo->threads; i++) {
		const struct topo_thread *th = &f->topo->thread[i];
		int64_t start, end, pid;
		int lives = topo_life(f->topo, &(struct subject){ SUBJECT_THREAD, i }, &start, &end, f->err);
		if (lives < 0 || first_value(f, th->pid, &pid))
			return -1;
		int leader = pid < 0 || pid > INT32_MAX ? -1 : topo_find_thread(f->topo, th->machine, (int32_t)pid);
		if (leader >= 0)
			text_escape(process, sizeof process, topo_longest_name(f->topo, (uint32_t)leader));
		if (fill_row(f, (struct table_cell[THREAD_FIELD_COUNT]){
			[COL_THREAD_MACHINE] = CELL_TEXT(f->machine[th->machine]), [COL_THREAD_TID] = CELL_INT(th->tid),
			[COL_THREAD_START] = lives ? CELL_INT(start) : CELL_NONE, [COL_THREAD_END] = lives ? CELL_INT(end) : CELL_NONE,
			[COL_THREAD_TITLE] = CELL_TEXT(text_escape(name, sizeof name, topo_longest_name(f->topo, i))),
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
	int rc = requests_read(f->topo, &options, &all, &notes, f->err);
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
