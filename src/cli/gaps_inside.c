#include "cli/gaps_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/kallsyms.h"
#include "cli/trace_input.h"
#include "cli/target_arg.h"

/* Where a kernel is put at random, it is a multiple of this from where it was linked. */
#define ALIGNED (UINT64_C(2) << 20)

static const struct column columns[] = {
	{ "machine", "machine", COL_TEXT }, { "vcpu", "vCPU", COL_INT }, { "mode", "in", COL_WHOLE },
	{ "address", "mod 2 MiB", COL_WHOLE }, { "symbol", "function", COL_TEXT }, { "count", "times", COL_INT },
	{ "total_ns", "preempted", COL_DURATION }, { "share", "of its", COL_SHARE },
	{ "longest_ns", "longest", COL_DURATION }, { "longest_at", "at", COL_CLOCK },
};

/* What the figures are, and what would tell more. */
static void qualify(struct scene *s, const struct inside_list *l, const struct kallsyms *names, struct report_how how)
{
	struct notes notes = { 0 };
	size_t unnamed = 0, kernel = 0;
	char which[64];
	for (size_t i = 0; i < l->rows; i++) {
		kernel += l->row[i].address != 0;
		unnamed += l->row[i].address != 0 && !kallsyms_at(names, (uint64_t)l->row[i].address);
	}
	if (l->kernel)
		notes_add(&notes, NOTE_DOUBT, NULL,
		          "%s %s in the kernel of the guest: candidates for lock-holder preemption, since nothing tells whether it "
		          "held a lock", text_of_all(which, l->kernel, l->preempted, "preemption"),
		          l->kernel == 1 ? "was" : "were");
	if (l->silent || !l->vcpus)
		notes_add(&notes, NOTE_DOUBT, NULL,
		          "no preemption of %s is known with its instruction: that takes the host's event kvm_exit with guest_rip "
		          "and isa, or vcpu_pc", text_of_all(which, l->silent, l->vcpus, "vCPU"));
	if (names->symbols && unnamed)
		notes_add(&notes, NOTE_DOUBT, NULL,
		          "%s %s in no function of the file of names: it is of another kernel, or of another boot of it",
		          text_of_all(which, unnamed, kernel, "instruction"), unnamed == 1 ? "is" : "are");
	if (!notes.len)
		return;
	if (how.format == FORMAT_CSV)
		what_say(&notes);
	origin_doubt(&s->origin, &notes);
}

/* Instructions of one function are one row. */
static void join_functions(struct inside_list *l, const struct kallsyms *names)
{
	for (size_t i = 0; i < l->rows; i++) {
		struct inside_row *row = &l->row[i];
		const struct kallsym *f = row->address ? kallsyms_at(names, (uint64_t)row->address) : NULL;
		if (f)
			row->address = (int64_t)f->address;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct inside_row *x = a, *y = b;
	if (x->vcpu != y->vcpu)
		return x->vcpu < y->vcpu ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

static int by_total(const void *a, const void *b)
{
	const struct inside_row *x = a, *y = b;
	if (x->vcpu != y->vcpu)
		return x->vcpu < y->vcpu ? -1 : 1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return by_address(a, b);
}

static void add_up(struct inside_list *l)
{
	size_t n = 0;
	if (l->rows)
		qsort(l->row, l->rows, sizeof *l->row, by_address);
	for (size_t i = 0; i < l->rows; i++) {
		struct inside_row *to = n ? &l->row[n - 1] : NULL, *row = &l->row[i];
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
	if (n)
		qsort(l->row, n, sizeof *l->row, by_total);
}

static int64_t total_of(const struct inside_list *l, uint32_t vcpu)
{
	int64_t ns = 0;
	for (size_t i = 0; i < l->rows; i++)
		ns += l->row[i].vcpu == vcpu ? l->row[i].total : 0;
	return ns;
}

/* Returns how many rows are not shown. */
static size_t print_rows(struct report *r, const struct topo *topo, const struct inside_list *l,
                         const struct kallsyms *names, size_t top)
{
	int64_t total = 0;
	size_t left_out = 0;
	for (size_t i = 0, rank = 0; i < l->rows; i++) {
		const struct inside_row *e = &l->row[i];
		const struct topo_cpu *cpu = &topo->cpu[e->vcpu];
		const bool first = !i || e->vcpu != l->row[i - 1].vcpu, kernel = e->address != 0;
		const struct kallsym *f = kernel ? kallsyms_at(names, (uint64_t)e->address) : NULL;
		char address[24];
		rank = first ? 0 : rank + 1;
		total = first ? total_of(l, e->vcpu) : total;
		if (top && rank >= top) {
			left_out++;
			continue;
		}
		snprintf(address, sizeof address, "0x%06" PRIx64, (uint64_t)e->address % ALIGNED);
		report_row(r, (struct value[]){
			VAL_TEXT(topo->machine[cpu->machine].name), VAL_INT(cpu->number), VAL_TEXT(kernel ? "kernel" : "user"),
			kernel ? VAL_TEXT(address) : VAL_NONE, f ? VAL_TEXT(f->name) : VAL_NONE, VAL_INT((int64_t)e->count),
			VAL_INT(e->total), VAL_REAL((double)e->total / (double)total), VAL_INT(e->longest), VAL_INT(e->longest_at) });
	}
	return left_out;
}

static int print(struct scene *s, const struct subject *who, const struct kallsyms *names, size_t top,
                 struct report_how how, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_SPARING("gaps-inside", columns, "share longest_ns");
	struct inside_list l;
	if (insides_of(&s->topo, who, s->window.from, s->window.to, &l, err))
		return -1;
	scene_about(s, who, how);
	qualify(s, &l, names, how);
	join_functions(&l, names);
	add_up(&l);
	struct report *r = report_begin(stdout, how, &shape, &s->origin);
	const size_t left_out = print_rows(r, &s->topo, &l, names, top);
	insides_release(&l);
	if (report_end(r, err))
		return -1;
	if (left_out && how.format == FORMAT_TEXT)
		printf("\nshown: of each vCPU the %zu that took longest; %zu are left out (--top)\n", top, left_out);
	return 0;
}

int gaps_inside(struct scene *s, const char *subject, const char *kallsyms, size_t top, struct report_how how,
                struct error *err)
{
	struct kallsyms names = { 0 };
	struct subject who;
	if (subject && who_parse_vcpus(s, subject, &who, err))
		return -1;
	if (kallsyms && kallsyms_read(kallsyms, &names, err) < 0)
		return -1;
	int rc = print(s, subject ? &who : NULL, &names, top, how, err);
	kallsyms_release(&names);
	return rc;
}
