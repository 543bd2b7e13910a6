#include "cli/gaps_inside.h"

#include "base/base.h"
#include "cli/kallsyms.h"
#include "cli/trace_input.h"
#include "cli/target_arg.h"

/* Alignment of the kernel's random load address (KASLR): address bits below it are constant. */
#define KASLR_ALIGN (UINT64_C(2) << 20)

static const struct column columns[] = {
	{ "machine", "machine", COL_TEXT }, { "vcpu", "vCPU", COL_INT }, { "mode", "in", COL_UNCUT },
	{ "address", "mod 2 MiB", COL_UNCUT }, { "symbol", "function", COL_TEXT }, { "count", "times", COL_INT },
	{ "total_ns", "preempted", COL_DURATION }, { "share", "of its", COL_SHARE },
	{ "longest_ns", "longest", COL_DURATION }, { "longest_at", "at", COL_CLOCK },
};

/* Adds notes about missing events and symbols. */
static void add_notes(struct query_context *s, const struct preempted_code_list *l, const struct kallsyms *names,
                      struct report_how how)
{
	struct notes notes = { 0 };
	size_t unnamed = 0, kernel = 0;
	char which[64];
	for (size_t i = 0; i < l->rows; i++) {
		kernel += l->row[i].address != 0;
		unnamed += l->row[i].address != 0 && !kallsyms_at(names, (uint64_t)l->row[i].address);
	}
	if (l->kernel)
		note_add(&notes, KERNEL_PREEMPTIONS, NULL, text_count_of_all(which, l->kernel, l->preempted, "preemption"));
	if (l->silent || !l->vcpus)
		note_add(&notes, NO_INSTRUCTION_POINTERS, NULL, text_count_of_all(which, l->silent, l->vcpus, "vCPU"));
	if (names->symbols && unnamed)
		note_add(&notes, SYMBOLS_MISMATCH, NULL, text_count_of_all(which, unnamed, kernel, "instruction"));
	if (!notes.len)
		return;
	if (how.format == FORMAT_CSV)
		print_notes(&notes);
	origin_add_warnings(&s->origin, &notes);
}

/* Replaces the addresses of instructions by that of their function. */
static void map_to_functions(struct preempted_code_list *l, const struct kallsyms *names)
{
	for (size_t i = 0; i < l->rows; i++) {
		struct preempted_code_row *row = &l->row[i];
		const struct kallsym *f = row->address ? kallsyms_at(names, (uint64_t)row->address) : NULL;
		if (f)
			row->address = (int64_t)f->address;
	}
}

ORDER_BY(by_address, struct preempted_code_row, RISING(vcpu) RISING(address))

ORDER_BY(by_total, struct preempted_code_row, RISING(vcpu) FALLING(total) RISING(address))

/* Merges rows with equal vCPU and address, and sorts the rows by vCPU and total time. */
static void merge_rows(struct preempted_code_list *l)
{
	size_t n = 0;
	ARRAY_SORT(l->row, l->rows, by_address);
	for (size_t i = 0; i < l->rows; i++) {
		struct preempted_code_row *to = n ? &l->row[n - 1] : NULL, *row = &l->row[i];
		if (!to || to->vcpu != row->vcpu || to->address != row->address) {
			l->row[n++] = *row;
			continue;
		}
		to->count += row->count;
		to->total += row->total;
		if (row->longest > to->longest || (row->longest == to->longest && row->longest_at < to->longest_at)) {
			to->longest = row->longest;
			to->longest_at = row->longest_at;
		}
	}
	l->rows = n;
	ARRAY_SORT(l->row, n, by_total);
}

static int64_t vcpu_total_ns(const struct preempted_code_list *l, uint32_t vcpu)
{
	int64_t ns = 0;
	for (size_t i = 0; i < l->rows; i++)
		ns += l->row[i].vcpu == vcpu ? l->row[i].total : 0;
	return ns;
}

/* Adds the first `top` rows of each vCPU to the report (0: all). Returns how many rows were omitted. */
static size_t print_rows(struct report *r, const struct catalog *catalog, const struct preempted_code_list *l,
                         const struct kallsyms *names, size_t top)
{
	int64_t total = 0;
	size_t omitted = 0;
	for (size_t i = 0, rank = 0; i < l->rows; i++) {
		const struct preempted_code_row *e = &l->row[i];
		const struct catalog_cpu *cpu = &catalog->cpu[e->vcpu];
		const bool first = !i || e->vcpu != l->row[i - 1].vcpu, kernel = e->address != 0;
		const struct kallsym *f = kernel ? kallsyms_at(names, (uint64_t)e->address) : NULL;
		char address[24];
		rank = first ? 0 : rank + 1;
		total = first ? vcpu_total_ns(l, e->vcpu) : total;
		if (top && rank >= top) {
			omitted++;
			continue;
		}
		snprintf(address, sizeof address, "0x%06" PRIx64, (uint64_t)e->address % KASLR_ALIGN);
		report_row(r, (struct value[]){
			VAL_TEXT(catalog->machine[cpu->machine].name), VAL_INT(cpu->number), VAL_TEXT(kernel ? "kernel" : "user"),
			kernel ? VAL_TEXT(address) : VAL_NONE, f ? VAL_TEXT(f->name) : VAL_NONE, VAL_INT((int64_t)e->count),
			VAL_INT(e->total), VAL_REAL((double)e->total / (double)total), VAL_INT(e->longest), VAL_INT(e->longest_at) });
	}
	return omitted;
}

static int print_gaps_inside(struct query_context *s, const struct target *target, const struct kallsyms *names, size_t top,
                 struct report_how how, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("gaps-inside", columns, "share longest_ns");
	struct preempted_code_list l;
	if (preempted_code_of(&s->catalog, target, s->window.from, s->window.to, &l, err))
		return -1;
	query_context_about(s, target, how);
	add_notes(s, &l, names, how);
	map_to_functions(&l, names);
	merge_rows(&l);
	struct report *r = report_begin(stdout, how, &shape, &s->origin);
	const size_t omitted = print_rows(r, &s->catalog, &l, names, top);
	preempted_code_release(&l);
	if (report_end(r, err))
		return -1;
	if (omitted && how.format == FORMAT_TEXT)
		printf("\nshown: the %zu longest of each vCPU; omitted: %zu (--top)\n", top, omitted);
	return 0;
}

int gaps_inside(struct query_context *s, const char *target_text, const char *kallsyms, size_t top, struct report_how how,
                struct error *err)
{
	struct kallsyms names = { 0 };
	struct target target;
	if (target_text && target_parse_vcpus(s, target_text, &target, err))
		return -1;
	char *symbols = kallsyms ? trace_input_path(kallsyms, err) : NULL;
	const bool is_unread = kallsyms && (!symbols || kallsyms_read(symbols, &names, err) < 0);
	free(symbols);
	if (is_unread)
		return -1;
	int rc = print_gaps_inside(s, target_text ? &target : NULL, &names, top, how, err);
	kallsyms_release(&names);
	return rc;
}
