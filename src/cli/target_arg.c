#include "cli/target_arg.h"

#include "base/base.h"

#define LISTED_MAX 20  /* maximum length of the list of candidates */

struct target_candidate {
	struct target target;
	int64_t start, end, lost;
};

static const struct column columns[] = {
	{ "target", "target", COL_TEXT },
	{ "start", "from", COL_CLOCK },
	{ "end", "to", COL_CLOCK },
	{ "lost_ns", "lost", COL_DURATION },
};

ORDER_BY(by_loss, struct target_candidate, FALLING(lost) RISING(start))

/* Returns the candidates with lifetime and lost time, sorted by lost time. NULL: error. The caller frees. */
static struct target_candidate *rank_candidates(const struct query_context *s, const struct target *found, size_t n,
                                        struct error *err)
{
	struct target_candidate *c = mem_new(n, sizeof *c);
	for (size_t i = 0; i < n; i++) {
		c[i] = (struct target_candidate){ .target = found[i], .start = history_begin(s->h), .end = history_end(s->h) };
		if (catalog_lifetime(&s->catalog, &found[i], &c[i].start, &c[i].end, err) < 0 ||
		    steal_time(&s->catalog, &found[i], c[i].start, c[i].end, &c[i].lost, err) < 0) {
			free(c);
			return NULL;
		}
	}
	qsort(c, n, sizeof *c, by_loss);
	return c;
}

static int list_candidates(const struct query_context *s, const struct target *found, size_t n, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("who", columns);
	struct target_candidate *c = rank_candidates(s, found, n, err);
	if (c) {
		struct report *r = report_begin(stderr, REPORT_WHOLE(FORMAT_TEXT), &shape, NULL);
		for (size_t i = 0; i < n && i < LISTED_MAX; i++) {
			char name[ACTOR_TEXT];
			report_row(r, (struct value[]){ VAL_SHOWN(catalog_target_text(&s->catalog, &c[i].target, name, sizeof name)),
			                                VAL_INT(c[i].start), VAL_INT(c[i].end), VAL_INT(c[i].lost) });
		}
		report_end(r, NULL);
		if (n > LISTED_MAX)
			fprintf(stderr, "and %zu more that lost less time\n", n - LISTED_MAX);
	}
	free(c);
	return c ? 0 : -1;
}

int target_find_all(struct query_context *s, const char *text, struct target **out, size_t *n, struct error *err)
{
	struct target one;
	struct target_candidate *c = NULL;
	*out = NULL;
	const int selected = catalog_select(&s->catalog, text, false, &one, err);
	if (selected) {
		*out = selected > 0 ? mem_new(1, sizeof **out) : NULL;
		*n = selected > 0;
		if (*out)
			**out = one;
		return selected > 0 ? 0 : -1;
	}
	if (catalog_find_targets(&s->catalog, text, out, n, err) < 0)
		return -1;
	if (*n == 0)
		return catalog_single_target(&s->catalog, text, *out, 0, &one, err);
	c = rank_candidates(s, *out, *n, err);
	for (size_t i = 0; c && i < *n; i++)
		(*out)[i] = c[i].target;
	free(c);
	return c ? 0 : -1;
}

int target_parse(struct query_context *s, const char *text, struct target *out, struct error *err)
{
	struct target *found = NULL;
	size_t n = 0;
	int rc = catalog_select(&s->catalog, text, false, out, err);
	if (rc)
		return rc > 0 ? 0 : -1;
	rc = catalog_find_targets(&s->catalog, text, &found, &n, err);
	if (rc == 0 && n > 1)
		rc = list_candidates(s, found, n, err);
	if (rc == 0)
		rc = catalog_single_target(&s->catalog, text, found, n, out, err);
	free(found);
	return rc;
}

bool target_is_pcpu(const struct query_context *s, const struct target *target)
{
	return target->kind == TARGET_CPU && s->catalog.machine[s->catalog.cpu[target->index].machine].kind != MACHINE_VM;
}

int target_parse_victim(struct query_context *s, const char *text, struct target *out, struct error *err)
{
	if (target_parse(s, text, out, err))
		return -1;
	if (target_is_pcpu(s, out))
		return error_set(err, STATUS_USAGE, "use a machine, a vCPU or a thread; stealscope flow shows the users of "
		                                    "this CPU",
		                 "%s: a physical CPU loses no time", text);
	return 0;
}

int target_parse_vcpus(struct query_context *s, const char *text, struct target *out, struct error *err)
{
	if (target_parse(s, text, out, err))
		return -1;
	if (out->kind == TARGET_THREAD || target_is_pcpu(s, out))
		return error_set(err, STATUS_USAGE, "use a VM, or a vCPU, for example Debian/CPU0", "%s: not a machine or vCPU",
		                 text);
	return 0;
}

#define NAMED 3  /* threads named in a remedy */

int target_parse_row(struct query_context *s, const char *text, struct target *out, struct error *err)
{
	if (target_parse(s, text, out, err))
		return -1;
	if (out->kind != TARGET_MACHINE)
		return 0;
	const struct summary_options options = { .only = out, .from = s->window.from, .to = s->window.to };
	const struct catalog_machine *m = &s->catalog.machine[out->index];
	const bool is_process = s->catalog.set && m->group < 0 && out->index == s->catalog.machines - 1;
	struct summary summary = { 0 };
	char name[ACTOR_TEXT], remedy[sizeof err->remedy] = "name a thread or vCPU of it";
	size_t used = strlen(remedy), named = 0;
	if (query_answer(summary_open(&s->catalog, &options), &summary, NULL) == 0)
		summary_sort(&summary, &s->catalog, SUMMARY_BY_LOST);
	for (size_t i = 0; i < summary.rows && named < (is_process ? 1 : NAMED) && used < sizeof remedy; i++) {
		if (summary.row[i].target.kind != TARGET_THREAD)
			continue;
		*out = is_process ? summary.row[i].target : *out;
		catalog_target_text(&s->catalog, &summary.row[i].target, name, sizeof name);
		used += (size_t)snprintf(remedy + used, sizeof remedy - used, "%s %s", named++ ? "," : "; most delayed:", name);
	}
	summary_release(&summary);
	if (!is_process || !named)
		return error_set(err, STATUS_USAGE, remedy, "%s: a machine, not a thread or CPU", text);
	fprintf(stderr, "stealscope: note: the thread of the process that lost most: %s\n", name);
	return 0;
}
