#include "cli/live_assertion.h"

#include <math.h>

#include "base/base.h"

int live_assertion_parse(const char *text, struct live_assertion *a, struct error *err)
{
	static const char *const column[] = { "steal", "throttled", "run", "lost" };
	const char *less = strchr(text, '<');
	char *end = NULL;
	const double limit = less ? strtod(less + 1, &end) : 0;
	a->text = text;
	a->limit = limit / 100;
	for (unsigned i = 0; less && i < sizeof column / sizeof *column; i++) {
		const size_t n = strlen(column[i]);
		if ((size_t)(less - text) > n + 1 && less[-(long)n - 1] == '.' && strncmp(less - n, column[i], n) == 0 &&
		    end != less + 1 && strcmp(end, "%") == 0 && isfinite(limit) && limit >= 0) {
			a->column = i;
			snprintf(a->name, sizeof a->name, "%.*s", (int)((size_t)(less - text) - n - 1), text);
			return 0;
		}
	}
	return error_set(err, STATUS_USAGE, "for example 'web.steal<10%' or '*.throttled<5%'", "--assert: invalid: '%s'", text);
}

int64_t live_assertion_time(const struct live_assertion *a, const struct live_times *n)
{
	switch (a->column) {
	case ASSERT_STEAL: return n->stolen;
	case ASSERT_THROTTLED: return n->throttled;
	case ASSERT_RUN: return n->ran;
	case ASSERT_LOST: return n->stolen + n->throttled;
	}
	return 0;
}

static int compare(const struct live_assertion *a, const struct live_sample *s, const struct live_times *n,
                   const char *name, struct error *err)
{
	const int64_t ns = live_assertion_time(a, n);
	if ((double)ns < a->limit * (double)s->period)
		return 0;
	return error_set(err, STATUS_ASSERTION, NULL, "%s does not hold: %s has %.1f %%", a->text, name,
	                 100 * (double)ns / (double)s->period);
}

/* Sums a control group's processes. */
static int check_group(const struct live_assertion *a, const struct live_sample *s, size_t group, struct error *err)
{
	struct live_times sum = { 0 };
	for (size_t i = 0; i < s->vcpus; i++) {
		if (s->vcpu[i].group != (int32_t)group)
			continue;
		sum.ran += s->vcpu[i].ns.ran;
		sum.stolen += s->vcpu[i].ns.stolen;
		sum.throttled += s->vcpu[i].ns.throttled;
	}
	return compare(a, s, &sum, s->group[group].name, err);
}

int live_assertion_check(const struct live_assertion *a, const struct live *l, const struct live_sample *s,
                         struct error *err)
{
	const bool all = strcmp(a->name, "*") == 0;
	bool found = all;
	for (size_t g = 0; g < s->groups && !all; g++) {
		if (s->group[g].kind == LIVE_VM || strcmp(a->name, s->group[g].name) != 0)
			continue;
		found = true;
		if (check_group(a, s, g, err))
			return -1;
	}
	for (size_t i = 0; i < s->vcpus; i++) {
		const struct live_vcpu *v = &s->vcpu[i];
		char name[LIVE_NAME + 32];
		if (!all && strcmp(a->name, v->machine) != 0)
			continue;
		found = true;
		if (v->number >= 0)
			snprintf(name, sizeof name, "vCPU %d of %s", v->number, v->machine);
		else
			snprintf(name, sizeof name, "%s (%d)", v->machine, v->pid);
		if (compare(a, s, &v->ns, name, err))
			return -1;
	}
	if (found || live_knows(l, a->name))
		return 0;
	return error_set(err, STATUS_INPUT, "see stealscope top -b",
	                 "--assert %s: no VM, group or process has this name", a->text);
}
