/* The one change that would help a VM most: each that its operator could make is replayed.
 *
 * Of changes that help about as much (ALIKE), the one that stands first among the candidates is told: the cheaper ones do.
 * A weight is not advised where weights are in doubt.  What a quota holds back is lost, too.
 * Cost: of one whatif, and some ten replays for each candidate more. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "compare/whatif/whatif.h"

#define CPUS_TRIED 8
#define ALIKE 0.1   /* of what is waited */
#define WORTH 0.01  /* of a CPU: who loses less needs no advice */

struct proposal { char *change; struct whatif_row row; double missed; bool doubted, lifts; };

struct candidates {
	struct proposal *item;
	size_t len, cap;
};

/* Replays one change; what it makes of the VM's waits is kept, if it can be known. */
static void try(struct candidates *all, struct whatif_base *base, const struct topo *topo, const char *vm, char *change)
{
	struct whatif_change c;
	struct whatif w;
	struct notes notes = { 0 };
	struct error err = ERROR_INIT;
	bool told = false;
	if (whatif_parse(topo, change, &c, &err) == 0 && whatif_ask(base, &c, 1, false, &w, &notes, &err) == 0) {
		for (size_t i = 0; i < w.rows && !told; i++) {
			told = w.row[i].kind == DIFF_OF_MACHINE && w.row[i].quantity == DIFF_LOST && !strcmp(w.row[i].subject, vm) &&
			       !(w.doubted && c.kind == WHATIF_WEIGHT);
			if (told)
				*ARRAY_PUSH(all->item, all->len, all->cap) = (struct proposal){ change, w.row[i], w.missed, w.doubted,
				                                                                c.kind == WHATIF_NO_QUOTA };
		}
		whatif_release(&w);
	}
	if (!told)
		free(change);
	whatif_change_release(&c);
	notes_release(&notes);
}

/* "without" whoever that is: a VM, or the host's threads of that name; where a name would mean something else, the TID. */
static char *without(const struct topo *topo, const struct party *p, const char *name)
{
	if (topo->machine[p->system].kind != MACHINE_HOST)
		return mem_printf("without %s", topo->machine[p->system].name);
	return *name && !strpbrk(name, "*?[/") ? mem_printf("without host/%s", name)
	                                       : mem_printf("without host/%d", (int)p->tid);
}

/* Who took most of it, as somebody to move elsewhere. */
static char *without_thief(const struct diff_side *side, const struct subject *vm)
{
	const struct topo *topo = side->topo;
	const struct topo_machine *m = &topo->machine[vm->index];
	struct error err = ERROR_INIT;
	char *change = NULL;
	int64_t most = 0;
	for (uint32_t i = m->cpu; i < m->cpu + m->cpus; i++) {
		struct flow f;
		if (flow_of(topo, &(struct subject){ SUBJECT_CPU, i }, side->from, side->to, &(struct flow_options){ 0 }, &f, &err))
			break;
		for (size_t k = 0; k < f.entries; k++) {
			const struct party *p = &f.entry[k].who;
			if (p->kind != FLOW_PREEMPTING || p->system < 0 || p->tid < 0 || (uint32_t)p->system == vm->index ||
			    f.entry[k].duration <= most)
				continue;
			most = f.entry[k].duration;
			free(change);
			change = without(topo, p, f.name[p->name]);
		}
		flow_release(&f);
	}
	return change;
}

static void try_all(struct candidates *all, const struct diff_side *side, const struct subject *vm, const char *shown)
{
	const struct topo *topo = side->topo;
	const struct topo_machine *m = &topo->machine[vm->index], *host = &topo->machine[0];
	struct error err = ERROR_INIT;
	struct whatif_base *base = whatif_open(side, NULL, &err);
	if (!base)
		return;
	try(all, base, topo, shown, mem_printf("no quota %s", m->name));
	for (uint32_t i = 0; m->cpus == 1 && i < host->cpus && i < CPUS_TRIED; i++)
		try(all, base, topo, shown, mem_printf("pin %s -> CPU%u", m->name, topo->cpu[host->cpu + i].number));
	try(all, base, topo, shown, mem_printf("free %s", m->name));
	try(all, base, topo, shown, mem_printf("weight %s 200", m->name));
	try(all, base, topo, shown, mem_dup("add CPU"));
	char *thief = without_thief(side, vm);
	if (thief)
		try(all, base, topo, shown, thief);
	whatif_close(base);
}

static double lost_then(const struct proposal *p)
{
	return p->row.value + p->row.held_then;
}

/* What would help a little more, but is dearer. */
static char *but_for(const struct proposal *told, const struct proposal *best)
{
	char then[40], change[300];
	if (lost_then(told) - lost_then(best) < WORTH)
		return mem_dup("");
	diff_value_text(then, sizeof then, DIFF_LOST, best->row.value, false);
	return mem_printf(", or nearly ('%s': %s)", text_escape(change, sizeof change, best->change), then);
}

static char *praise(const struct proposal *told, const struct proposal *best, size_t n, const char *vm)
{
	char t[5][40], change[300], *most = but_for(told, best), *text;
	const double v[] = { told->row.value, told->row.recorded, told->row.low, told->row.high, told->row.held };
	for (int i = 0; i < 5; i++)
		diff_value_text(t[i], sizeof t[i], DIFF_LOST, v[i], false);
	text_escape(change, sizeof change, told->change);
	const char *doubt = told->doubted ? ", if all weigh what their nice levels say" : "";
	if (told->lifts)
		text = mem_printf("Of %zu changes that were replayed '%s' would help %s most%s: its quota keeps it from its CPU "
		                  "for %s of the time; without it, it would lose %s of a CPU to waiting for one (%s to %s%s).\n", n,
		                  change, vm, most, t[4], t[0], t[2], t[3], doubt);
	else
		text = mem_printf("Of %zu changes that were replayed '%s' would help %s most%s: it would lose %s of a CPU to "
		                  "waiting for one, not %s (%s to %s%s).\n", n, change, vm, most, t[0], t[1], t[2], t[3], doubt);
	free(most);
	return text;
}

static char *advice(const struct candidates *all, const char *vm)
{
	const struct proposal *best = NULL, *told = NULL;
	for (size_t i = 0; i < all->len; i++)
		if (!best || lost_then(&all->item[i]) < lost_then(best))
			best = &all->item[i];
	if (!best)
		return mem_printf("No advice: what %s wants cannot be replayed (stealscope whatif says why).\n", vm);
	const double lost = best->row.recorded + best->row.held;
	if (lost < WORTH)
		return mem_printf("No advice: %s waits for CPUs of the host for less than %g%% of the time.\n", vm, 100 * WORTH);
	if (best->missed > WHATIF_MISSES)
		return mem_printf("No advice: the replay reproduces no more than %.0f%% of what is lost.\n",
		                  100 * fmax(0, 1 - best->missed));
	for (size_t i = 0; i < all->len && !told; i++)
		if (lost_then(&all->item[i]) <= lost_then(best) + ALIKE * lost)
			told = &all->item[i];
	if (told->row.high + told->row.held_then >= lost)
		return mem_printf("No advice: no change of %zu that were replayed is sure to help %s.\n", all->len, vm);
	return praise(told, best, all->len, vm);
}

char *advise(const struct diff_side *side, const struct subject *who)
{
	const struct topo *topo = side->topo;
	struct candidates all = { 0 };
	char shown[300];
	const struct subject vm = { SUBJECT_MACHINE, subject_machine(topo, who) };
	topo_subject_text(topo, &vm, shown, sizeof shown);
	if (topo->machine[vm.index].kind != MACHINE_VM)
		return mem_printf("No advice: %s is no virtual machine.\n", shown);
	try_all(&all, side, &vm, shown);
	char *text = advice(&all, shown);
	for (size_t i = 0; i < all.len; i++)
		free(all.item[i].change);
	free(all.item);
	return text;
}
