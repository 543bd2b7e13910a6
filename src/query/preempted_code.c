/* Preempted code: the guest's instruction pointer at the VM exits that began a preemption.
 *
 * Cost: one walk over these exits. Memory: a row per instruction. */
#include "base/base.h"
#include "query/query_internal.h"

struct code_survey {
	struct preempted_code_list *out;
	size_t cap;
	struct map row_of;        /* current vCPU: address -> index of the row */
};

static void survey_add(struct code_survey *p, uint32_t vcpu, int64_t address, int64_t start, int64_t end)
{
	bool is_new;
	uint64_t *at = map_put(&p->row_of, (uint64_t)address, &is_new);
	if (is_new) {
		*at = p->out->rows;
		*ARRAY_PUSH(p->out->row, p->out->rows, p->cap) = (struct preempted_code_row){ .vcpu = vcpu, .address = address };
	}
	struct preempted_code_row *row = &p->out->row[*at];
	const int64_t ns = end - start + 1;
	row->total += ns;
	p->out->preempted++;
	p->out->kernel += address != 0;
	if (row->count++ && ns <= row->longest)
		return;
	row->longest = ns;
	row->longest_at = start;
}

static int survey_add_vcpu(struct code_survey *p, const struct catalog *catalog, uint32_t vcpu, int64_t from, int64_t to,
                           struct error *err)
{
	struct history_cursor c;
	struct interval iv;
	const uint32_t attr = catalog->cpu[vcpu].inside;
	int got;
	p->out->vcpus++;
	p->out->silent += attr == HISTORY_NONE;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, catalog->h, attr, from, to, err) < 0)
		return -1;
	while ((got = history_range_next(&c, &iv, err)) > 0)
		if (iv.value != HISTORY_NULL)
			survey_add(p, vcpu, iv.value, iv.start > from ? iv.start : from, iv.end < to ? iv.end : to);
	map_release(&p->row_of);
	p->row_of = (struct map)MAP_INIT;
	return got;
}

ORDER_BY(compare_rows, struct preempted_code_row, RISING(vcpu) FALLING(total) RISING(address))

int preempted_code_of(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to,
                      struct preempted_code_list *out, struct error *err)
{
	struct code_survey p = { .out = out };
	int rc = 0;
	*out = (struct preempted_code_list){ 0 };
	from = from > history_begin(catalog->h) ? from : history_begin(catalog->h);
	to = to < history_end(catalog->h) ? to : history_end(catalog->h);
	for (uint32_t i = 0; i < catalog->cpus && rc == 0; i++)
		if (vcpu_is_in_target(catalog, target, i))
			rc = survey_add_vcpu(&p, catalog, i, from, to, err);
	map_release(&p.row_of);
	ARRAY_SORT(out->row, out->rows, compare_rows);
	if (rc < 0)
		preempted_code_release(out);
	return rc;
}

void preempted_code_release(struct preempted_code_list *l)
{
	free(l->row);
	*l = (struct preempted_code_list){ 0 };
}
