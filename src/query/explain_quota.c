/* Sentences on the quota that kept a target off: whose limit it is, how often it was reached, and which threads used it. */
#include "base/base.h"
#include "query/explain.h"

#define USERS_MAX 3
#define LEAST_SHARE 0.01   /* of the target's lost time */

struct quota_user { uint32_t thread; int64_t ran; };

ORDER_BY(compare_users, struct quota_user, FALLING(ran))

/* Writes the time that the threads of a group ran per period, and the threads that ran most of it. */
static int write_users(struct explanation *s, const struct catalog_group *g, struct error *err)
{
	const struct catalog *t = s->catalog;
	const struct catalog_machine *host = &t->machine[0];
	struct quota_user *user = mem_new(host->threads + 1, sizeof *user);
	size_t users = 0;
	int64_t all = 0, group;
	int rc = 0;
	for (uint32_t i = host->thread; i < host->thread + host->threads && rc == 0; i++) {
		struct demand demand;
		rc = attribute_last_value(t, t->thread[i].group, &group, err);
		if (rc || !catalog_group_contains(t, g, group))
			continue;
		rc = demand_of(t, &(struct target){ TARGET_THREAD, i }, s->f->start, s->f->end, &demand, err);
		if (rc == 0 && demand.ran > 0)
			user[users++] = (struct quota_user){ i, demand.ran };
		all += rc == 0 ? demand.ran : 0;
	}
	ARRAY_SORT(user, users, compare_users);
	const double periods = ((double)(s->f->end - s->f->start) + 1) / (double)g->period_ns;
	char d[TIME_TEXT], name[256];
	if (rc == 0 && all > 0 && periods >= 1)
		fprintf(s->to, " Its threads ran %s per period", time_duration(d, (int64_t)((double)all / periods)));
	for (size_t i = 0; rc == 0 && all > 0 && periods >= 1 && users > 1 && i < users && i < USERS_MAX; i++)
		fprintf(s->to, "%s%s %.0f %%", i ? ", " : ": ",
		        text_escape(name, sizeof name, catalog_longest_name(t, user[i].thread)),
		        100 * (double)user[i].ran / (double)all);
	if (rc == 0 && all > 0 && periods >= 1)
		fputc('.', s->to);
	free(user);
	return rc;
}

int explain_quota(struct explanation *s, struct error *err)
{
	const struct catalog *t = s->catalog;
	int64_t limited = 0, group;
	bool is_only;
	for (size_t i = 0; i < s->f->entries; i++) {
		const struct actor *p = &s->f->entry[i].actor;
		if (p->kind == FLOW_LIMITED && (p->reason == OUT_QUOTA || p->reason == OUT_QUOTA_OR_OTHERS))
			limited += s->f->entry[i].lost;
	}
	const int32_t thread = s->target.kind == TARGET_THREAD ? (int32_t)s->target.index
	                     : s->target.kind == TARGET_CPU ? t->cpu[s->target.index].host : -1;
	if (thread < 0 || !t->groups || !s->demand.lost ||
	    (double)limited < LEAST_SHARE * (double)s->demand.lost)
		return 0;
	if (attribute_last_value(t, t->thread[thread].group, &group, err))
		return -1;
	const struct catalog_group *g = catalog_find_limit(t, group, &is_only);
	if (!g)
		return 0;
	char a[TIME_TEXT], b[TIME_TEXT], path[512];
	fprintf(s->to, "Limit: %s may run %s per %s", text_escape(path, sizeof path, g->path), time_duration(a, g->quota_ns),
	        time_duration(b, g->period_ns));
	if (g->periods > 0 && g->throttled >= 0)
		fprintf(s->to, "; by cpu.stat it was throttled in %" PRId64 " of %" PRId64 " periods", g->throttled, g->periods);
	fputc('.', s->to);
	const int rc = write_users(s, g, err);
	fputc('\n', s->to);
	return rc;
}
