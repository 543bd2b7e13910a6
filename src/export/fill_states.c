/* Fills the tables of intervals (vcpu_state, running, exit, thread_state, name): reads one attribute of each CPU or
 * thread. Intervals with the value null are skipped. */
#include "export/fill.h"

#define READ_BATCH 64  /* intervals read at once */

/* Calls fn() for every interval of the attribute that is not null, clipped to the time range of the history. */
static int each_interval(struct filler *f, uint32_t attr, int (*fn)(struct filler *, const struct interval *, void *),
                         void *arg)
{
	struct history_cursor c;
	struct interval iv[READ_BATCH];
	int n;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, f->h, attr, history_begin(f->h), history_end(f->h), f->err))
		return -1;
	while ((n = history_range_read(&c, iv, READ_BATCH, f->err)) > 0)
		for (int i = 0; i < n; i++) {
			iv[i].start = iv[i].start > history_begin(f->h) ? iv[i].start : history_begin(f->h);
			iv[i].end = iv[i].end < history_end(f->h) ? iv[i].end : history_end(f->h);
			if (iv[i].value != HISTORY_NULL && fn(f, &iv[i], arg))
				return -1;
		}
	return n;
}

static int64_t interval_length(const struct interval *iv)
{
	return iv->end - iv->start + 1;
}

/* ---- CPUs */

static int vcpu_state_row(struct filler *f, const struct interval *iv, void *arg)
{
	const struct catalog_cpu *cpu = arg;
	return fill_row(f, (struct table_cell[VCPU_STATE_FIELD_COUNT]){
		[COL_VCPU_STATE_MACHINE] = CELL_TEXT(f->machine[cpu->machine]), [COL_VCPU_STATE_CPU] = CELL_INT(cpu->number),
		[COL_VCPU_STATE_TS] = CELL_INT(iv->start), [COL_VCPU_STATE_DUR] = CELL_INT(interval_length(iv)),
		[COL_VCPU_STATE_STATE] = fill_text(f, BANK_STATE,
			history_state_name(f->h, cpu->status, (unsigned)iv->value)) });
}

static int running_row(struct filler *f, const struct interval *iv, void *arg)
{
	const struct catalog_cpu *cpu = arg;
	return fill_row(f, (struct table_cell[RUNNING_FIELD_COUNT]){
		[COL_RUNNING_MACHINE] = CELL_TEXT(f->machine[cpu->machine]), [COL_RUNNING_CPU] = CELL_INT(cpu->number),
		[COL_RUNNING_TS] = CELL_INT(iv->start), [COL_RUNNING_DUR] = CELL_INT(interval_length(iv)),
		[COL_RUNNING_TID] = CELL_INT(iv->value) });
}

static int exit_row(struct filler *f, const struct interval *iv, void *arg)
{
	const struct catalog_cpu *cpu = arg;
	return fill_row(f, (struct table_cell[EXIT_FIELD_COUNT]){
		[COL_EXIT_MACHINE] = CELL_TEXT(f->machine[cpu->machine]), [COL_EXIT_CPU] = CELL_INT(cpu->number),
		[COL_EXIT_TS] = CELL_INT(iv->start), [COL_EXIT_DUR] = CELL_INT(interval_length(iv)),
		[COL_EXIT_REASON] = fill_text(f, BANK_STATE, history_string(f->h, iv->value)) });
}

static int each_cpu(struct filler *f, const char *phase, enum cpu_attr attr,
                    int (*fn)(struct filler *, const struct interval *, void *))
{
	for (uint32_t i = 0; i < f->catalog->cpus; i++) {
		struct catalog_cpu *cpu = &f->catalog->cpu[i];
		bool has = attr != CPU_STATUS || f->catalog->machine[cpu->machine].kind == MACHINE_VM;
		if (fill_tick(f, phase, i, f->catalog->cpus) || (has && each_interval(f, cpu->id[attr], fn, cpu)))
			return -1;
	}
	return 0;
}

int fill_vcpu_states(struct filler *f) { return each_cpu(f, "vCPU states", CPU_STATUS, vcpu_state_row); }
int fill_running(struct filler *f) { return each_cpu(f, "running", CPU_CURRENT, running_row); }
int fill_exits(struct filler *f) { return each_cpu(f, "exits", CPU_EXIT, exit_row); }

/* ---- Threads */

/* Cursor over the attribute `cpu` of a thread, which follows the thread's states. */
struct cpu_cursor {
	const struct catalog_thread *thread;
	struct history_cursor cursor;
	struct interval at;                 /* current interval */
	struct interval read[READ_BATCH];   /* intervals read ahead; n of them, next: the next one */
	int next, n;
};

static int cpu_cursor_open(struct filler *f, struct cpu_cursor *o, const struct catalog_thread *th)
{
	*o = (struct cpu_cursor){ .thread = th, .at = { 1, 0, HISTORY_NULL } };
	if (th->cpu == HISTORY_NONE) {
		o->at = (struct interval){ INT64_MIN, INT64_MAX, HISTORY_NULL };
		return 0;
	}
	return history_range(&o->cursor, f->h, th->cpu, history_begin(f->h), history_end(f->h), f->err);
}

/* Moves to the interval that contains t. */
static int cpu_cursor_seek(struct filler *f, struct cpu_cursor *o, int64_t t)
{
	while (o->at.start > o->at.end || o->at.end < t) {
		if (o->next == o->n) {
			o->next = 0;
			o->n = history_range_read(&o->cursor, o->read, READ_BATCH, f->err);
			if (o->n < 0)
				return -1;
			if (o->n == 0) {
				o->at = (struct interval){ INT64_MIN, INT64_MAX, HISTORY_NULL };
				return 0;
			}
		}
		o->at = o->read[o->next++];
	}
	return 0;
}

static int thread_state_row(struct filler *f, const struct interval *iv, void *arg)
{
	struct cpu_cursor *o = arg;
	if (cpu_cursor_seek(f, o, iv->start))
		return -1;
	return fill_row(f, (struct table_cell[THREAD_STATE_FIELD_COUNT]){
		[COL_THREAD_STATE_MACHINE] = CELL_TEXT(f->machine[o->thread->machine]),
		[COL_THREAD_STATE_TID] = CELL_INT(o->thread->tid), [COL_THREAD_STATE_TS] = CELL_INT(iv->start),
		[COL_THREAD_STATE_DUR] = CELL_INT(interval_length(iv)),
		[COL_THREAD_STATE_STATE] = fill_text(f, BANK_STATE,
			history_state_name(f->h, o->thread->status, (unsigned)iv->value)),
		[COL_THREAD_STATE_CPU] = o->at.value == HISTORY_NULL ? CELL_NONE : CELL_INT(o->at.value) });
}

int fill_thread_states(struct filler *f)
{
	for (uint32_t i = 0; i < f->catalog->threads; i++) {
		struct cpu_cursor o;
		const struct catalog_thread *th = &f->catalog->thread[i];
		if (fill_tick(f, "thread states", i, f->catalog->threads) || cpu_cursor_open(f, &o, th) ||
		    each_interval(f, th->status, thread_state_row, &o))
			return -1;
	}
	return 0;
}

static int name_row(struct filler *f, const struct interval *iv, void *arg)
{
	const struct catalog_thread *th = arg;
	return fill_row(f, (struct table_cell[NAME_FIELD_COUNT]){
		[COL_NAME_MACHINE] = CELL_TEXT(f->machine[th->machine]), [COL_NAME_TID] = CELL_INT(th->tid),
		[COL_NAME_TS] = CELL_INT(iv->start), [COL_NAME_DUR] = CELL_INT(interval_length(iv)),
		[COL_NAME_NAME] = fill_text(f, BANK_STATE, history_string(f->h, iv->value)) });
}

int fill_names(struct filler *f)
{
	for (uint32_t i = 0; i < f->catalog->threads; i++)
		if (fill_tick(f, "names", i, f->catalog->threads) ||
		    each_interval(f, f->catalog->thread[i].name, name_row, &f->catalog->thread[i]))
			return -1;
	return 0;
}
