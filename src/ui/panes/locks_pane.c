/* The locks pane: the report of `gaps --locks` on a row: lock waits with waiter, holder, and the time that others took from
 * the holder. */
#include "base/base.h"
#include "ui/panes/pane.h"

struct locks_pane {
	struct table_pane table;
	struct lock_list list;
};

static struct query *locks_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	struct target s;
	(void)err;
	return locks_open(&app->catalog, pane_target(app, pane, &s), pane->from, pane->to);
}

static void locks_pane_drop_answer(struct pane *pane)
{
	locks_release(&((struct locks_pane *)pane)->list);
}

static int locks_pane_report(struct app *app, struct pane *pane, FILE *f, struct report_how how, struct origin *o,
                             struct error *err)
{
	struct target s;
	return report_locks(f, how, &app->catalog, &((struct locks_pane *)pane)->list, pane_target(app, pane, &s), 0, o, err);
}

static void locks_pane_get_empty_text(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	struct target s;
	pane_target(app, pane, &s);
	if (!locks_have_events(&app->catalog, target_machine(&app->catalog, &s)))
		snprintf(buf, size, "%s", "No recorded event names a lock there: record lock:contention_begin and _end, or "
		         "the futex system calls, of its kernel.");
	else if (s.kind == TARGET_CPU)
		snprintf(buf, size, "%s", "No VM exit shows spinning. For the lock waits of its threads press b on their machine.");
	else
		snprintf(buf, size, "%s", "None in the recorded events. Spinning on a lock in user space looks like computing.");
}

static void locks_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct lock_list *l = &((const struct locks_pane *)pane)->list;
	char name[640], waited[TIME_TEXT], length[TIME_TEXT], taken[TIME_TEXT];
	int64_t all = 0, lost = 0;
	table_pane_get_name(app, pane, name, sizeof name);
	pane_window_text(app, pane->from, pane->to, length);
	for (size_t i = 0; i < pane->lines; i++) {
		const struct lock_wait *wait = &l->wait[table_pane_row(pane, i)];
		all += wait->end - wait->start + 1;
		lost += wait->culprit_ns;
	}
	if (pane->lines == 0) {
		snprintf(buf, size, " no %s in %s ", name, length);
		return;
	}
	int n = snprintf(buf, size, " %zu %s in %s: %s ", pane->lines, name, length, time_duration(waited, all));
	if (lost && n + 35 < w)
		snprintf(buf + n - 1, size - (size_t)n + 1, ", %s taken from holders ", time_duration(taken, lost));
}

static void locks_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct lock_wait w = ((const struct locks_pane *)pane)->list.wait[table_pane_row(pane, i)];
	int thread = w.waiter.tid > 0 ? catalog_find_thread(&app->catalog, (uint32_t)w.waiter.machine, w.waiter.tid) : -1;
	pane_go(app, thread >= 0 ? (struct row_id){ ROW_THREAD, (uint32_t)thread }
	           : w.vcpu >= 0 ? (struct row_id){ ROW_CPU, (uint32_t)w.vcpu }
	                         : (struct row_id){ ROW_MACHINE, (uint32_t)w.waiter.machine }, w.start, w.end);
}

const struct pane_ops locks_pane = {
	TABLE_PANE, .size = sizeof(struct locks_pane), .is_scoped = true, .open = pane_scope_open,
	.query = locks_pane_open_query, PANE_ANSWER(struct locks_pane, list), .report = locks_pane_report,
	.orders = "waited taken start holder culprit", .marked = "taken culprit", .title = locks_pane_get_title,
	.empty_text = locks_pane_get_empty_text, .follow = locks_pane_follow_line, .drop_answer = locks_pane_drop_answer,
	.name_prefix = "lock waits of ", .file_prefix = "locks-", .sort = table_pane_sort, .name = table_pane_get_name,
	.file = table_pane_get_file_name, .status_text = table_pane_get_status_text, .export = table_pane_export,
};
