/* Advice: replays each change that an operator of a VM could make, and recommends the most helpful one.
 *
 * Among changes with similar effect (SIMILAR_EFFECT) the first candidate is recommended: candidates are tried from cheap
 * to expensive. A weight is not recommended if weights are uncertain. Time off the CPU because of a quota counts as
 * lost. Cost: one calibration, and each candidate's replays. */
#include <math.h>

#include "base/base.h"
#include "compare/whatif/whatif.h"

#define PIN_CPUS_MAX 8
#define SIMILAR_EFFECT 0.1   /* difference of lost time that counts as similar, as a fraction of the recorded loss */
#define RELEVANT_LOSS 0.01  /* share of a CPU: smaller losses need no advice */

struct proposal { char *change; struct whatif_row row; double quota_error; bool weights_uncertain, lifts_quota; };

struct candidates {
	struct proposal *item;
	size_t len, cap;
};

/* Replays one change and stores the result for the VM. Frees `change` if the result is unknown or uncertain. */
static void replay_candidate(struct candidates *all, struct whatif_base *base, const struct catalog *catalog,
                             const char *vm, char *change)
{
	struct whatif_change c;
	struct whatif w;
	struct notes notes = { 0 };
	struct error err = ERROR_INIT;
	bool found = false;
	if (whatif_parse(catalog, change, &c, &err) == 0 && whatif_query(base, &c, 1, false, &w, &notes, &err) == 0) {
		for (size_t i = 0; i < w.rows && !found; i++) {
			found = w.row[i].kind == DIFF_OF_MACHINE && w.row[i].quantity == DIFF_LOST && !strcmp(w.row[i].target, vm) &&
			       !(w.weights_uncertain && c.kind == WHATIF_WEIGHT);
			if (found)
				*ARRAY_PUSH(all->item, all->len, all->cap) =
					(struct proposal){ change, w.row[i], w.quota_error, w.weights_uncertain, c.kind == WHATIF_NO_QUOTA };
		}
		whatif_release(&w);
	}
	if (!found)
		free(change);
	whatif_change_release(&c);
	notes_release(&notes);
}

/* Returns the change that removes the actor's VM, or the host threads of its name; uses the TID if the name has special
 * characters. The caller frees the text. */
static char *remove_actor_change(const struct catalog *catalog, const struct actor *p, const char *name)
{
	if (catalog->machine[p->machine].kind != MACHINE_HOST)
		return mem_printf("without %s", catalog->machine[p->machine].name);
	return *name && !strpbrk(name, "*?[/") ? mem_printf("without host/%s", name)
	                                       : mem_printf("without host/%d", (int)p->tid);
}

/* Threads that no operator can remove: init, the kernel's threads, and the threads with which a VMM serves its VM. By
 * the beginning of the name, since a trace does not show to which process a thread belongs. */
static bool can_be_removed(const struct actor *p, const char *name)
{
	static const char *const needed[] = { "systemd", "kworker/", "ksoftirqd/", "migration/", "rcu", "kthreadd", "kswapd",
		"kcompactd", "khugepaged", "ksmd", "khvcd", "kauditd", "watchdog", "cpuhp/", "idle_inject/", "irq/", "jbd2/",
		"kvm-", "vhost-", "qemu", "IO ", "CPU ", "worker", "call_rcu", "libvirtd", "virtlogd" };
	if (p->tid <= 2 || !strcmp(name, "init"))
		return false;
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (!strncmp(name, needed[i], strlen(needed[i])))
			return false;
	return true;
}

/* Returns the change that removes the top culprit of the VM's waits; NULL: no culprit can be removed. The caller frees
 * the text. */
static char *remove_culprit_change(const struct diff_side *side, const struct target *vm)
{
	const struct catalog *catalog = side->catalog;
	const struct catalog_machine *m = &catalog->machine[vm->index];
	struct error err = ERROR_INIT;
	char *change = NULL;
	int64_t max_ns = 0;
	for (uint32_t i = m->cpu; i < m->cpu + m->cpus; i++) {
		struct flow f;
		if (query_answer(flow_open(catalog, &(struct target){ TARGET_CPU, i }, side->from, side->to,
		                           &(struct flow_options){ 0 }, &err), &f, &err))
			break;
		for (size_t k = 0; k < f.entries; k++) {
			const struct actor *p = &f.entry[k].actor;
			if (p->kind != FLOW_PREEMPTING || p->machine < 0 || p->tid < 0 || (uint32_t)p->machine == vm->index ||
			    f.entry[k].duration <= max_ns)
				continue;
			if (catalog->machine[p->machine].kind == MACHINE_HOST && !can_be_removed(p, f.name[p->name]))
				continue;
			max_ns = f.entry[k].duration;
			free(change);
			change = remove_actor_change(catalog, p, f.name[p->name]);
		}
		flow_release(&f);
	}
	return change;
}

static void replay_candidates(struct candidates *all, const struct diff_side *side, const struct target *vm,
                              const char *name)
{
	const struct catalog *catalog = side->catalog;
	const struct catalog_machine *m = &catalog->machine[vm->index], *host = &catalog->machine[0];
	struct error err = ERROR_INIT;
	struct whatif_base *base = whatif_open(side, NULL, &err);
	if (!base)
		return;
	replay_candidate(all, base, catalog, name, mem_printf("no quota %s", m->name));
	for (uint32_t i = 0; m->cpus == 1 && i < host->cpus && i < PIN_CPUS_MAX; i++)
		replay_candidate(all, base, catalog, name,
		                 mem_printf("pin %s -> CPU%u", m->name, catalog->cpu[host->cpu + i].number));
	replay_candidate(all, base, catalog, name, mem_printf("free %s", m->name));
	replay_candidate(all, base, catalog, name, mem_printf("weight %s 200", m->name));
	replay_candidate(all, base, catalog, name, mem_dup("add CPU"));
	char *culprit = remove_culprit_change(side, vm);
	if (culprit)
		replay_candidate(all, base, catalog, name, culprit);
	whatif_close(base);
}

static double lost_with_change(const struct proposal *p)
{
	return p->row.value + p->row.throttled_changed;
}

/* Text that mentions the best change if it is clearly better than the recommended, cheaper one; otherwise "". The caller
 * frees it. */
static char *alternative_text(const struct proposal *chosen, const struct proposal *best)
{
	char changed[40], change[300];
	if (lost_with_change(chosen) - lost_with_change(best) < RELEVANT_LOSS)
		return mem_dup("");
	diff_value_text(changed, sizeof changed, DIFF_LOST, best->row.value, false);
	return mem_printf(", or nearly ('%s': %s)", text_escape(change, sizeof change, best->change), changed);
}

static char *recommend_change(const struct proposal *chosen, const struct proposal *best, size_t n, const char *vm)
{
	char t[5][40], change[300], *alternative = alternative_text(chosen, best), *text;
	const double v[] = { chosen->row.value, chosen->row.recorded, chosen->row.low, chosen->row.high,
		                 chosen->row.throttled };
	for (int i = 0; i < 5; i++)
		diff_value_text(t[i], sizeof t[i], DIFF_LOST, v[i], false);
	text_escape(change, sizeof change, chosen->change);
	const char *caveat = chosen->weights_uncertain ? ", if weights follow nice levels" : "";
	if (chosen->lifts_quota)
		text = mem_printf("Of %zu changes that were replayed '%s' would help %s most%s: its quota keeps it from its CPU "
		                  "for %s of the time; without it, it would lose %s of a CPU to waiting for one (%s to %s%s).\n", n,
		                  change, vm, alternative, t[4], t[0], t[2], t[3], caveat);
	else
		text = mem_printf("Of %zu changes that were replayed '%s' would help %s most%s: it would lose %s of a CPU to "
		                  "waiting for one, not %s (%s to %s%s).\n", n, change, vm, alternative, t[0], t[1], t[2], t[3],
		                  caveat);
	free(alternative);
	return text;
}

static char *advice_text(const struct candidates *all, const char *vm)
{
	const struct proposal *best = NULL, *chosen = NULL;
	for (size_t i = 0; i < all->len; i++)
		if (!best || lost_with_change(&all->item[i]) < lost_with_change(best))
			best = &all->item[i];
	if (!best)
		return mem_printf("No advice: the demand of %s cannot be replayed (stealscope whatif prints why).\n", vm);
	const double lost = best->row.recorded + best->row.throttled;
	if (lost < RELEVANT_LOSS)
		return mem_printf("No advice: %s waits for CPUs of the host for less than %g%% of the time.\n", vm,
		                  100 * RELEVANT_LOSS);
	if (best->quota_error > WHATIF_ERROR_MAX)
		return mem_printf("No advice: the replay reproduces only %.0f%% of the loss.\n",
		                  100 * fmax(0, 1 - best->quota_error));
	for (size_t i = 0; i < all->len && !chosen; i++)
		if (lost_with_change(&all->item[i]) <= lost_with_change(best) + SIMILAR_EFFECT * lost)
			chosen = &all->item[i];
	if (chosen->row.high + chosen->row.throttled_changed >= lost)
		return mem_printf("No advice: %zu changes were replayed, none of them surely helps %s.\n", all->len, vm);
	return recommend_change(chosen, best, all->len, vm);
}

char *advise(const struct diff_side *side, const struct target *target)
{
	const struct catalog *catalog = side->catalog;
	struct candidates all = { 0 };
	char name[300];
	const struct target vm = { TARGET_MACHINE, target_machine(catalog, target) };
	catalog_target_text(catalog, &vm, name, sizeof name);
	if (catalog->machine[vm.index].kind != MACHINE_VM)
		return mem_printf("No advice: %s is not a virtual machine.\n", name);
	replay_candidates(&all, side, &vm, name);
	char *text = advice_text(&all, name);
	for (size_t i = 0; i < all.len; i++)
		free(all.item[i].change);
	free(all.item);
	return text;
}
