/* What the states of a history look like, and which attributes a row sums up.  Glyphs are in glyph.c. */
#include "ui/widgets/appearance.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ui/core/app.h"

#define SUMMED 64  /* threads at most that stand for a machine without CPUs */

const char *const tier_name[TIERS] = { [TIER_ASCII] = "ascii", [TIER_CELLS] = "cells", [TIER_BLOCKS] = "blocks" };

/* ---- What the states mean ------------------------------------------------------------------------------------- */

/* Codes of the states of one attribute's state set, by their names. */
static void learn_states(const struct app *app, uint32_t attr, bool vcpu, struct vocabulary *v)
{
	unsigned n = attr == HISTORY_NONE ? 0 : history_state_count(app->h, attr);
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		enum vis code = i < n ? vis_of_name(history_state_name(app->h, attr, i)) : VIS_UNKNOWN;
		if (vcpu && code == VIS_PREEMPTED)
			code = VIS_VCPU_PREEMPTED;
		v->code[i] = (uint8_t)code;
	}
	v->code[HISTORY_STATES - 1] = VIS_NONE;
	for (int c = 0; c < VIS_COUNT; c++)
		v->severity[c] = app->look.theme.state[c].severity;
}

/* Owners: code 0 is idle, 1 the host, then the machines; null is HISTORY_STATES - 1. */
static void learn_owners(const struct app *app, uint32_t attr, struct vocabulary *v)
{
	unsigned n = attr == HISTORY_NONE ? 0 : history_state_count(app->h, attr), next = 2;
	v->owners = true;
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		const char *name = i < n ? history_state_name(app->h, attr, i) : "";
		bool idle = strcmp(name, "idle") == 0, host = strcmp(name, "host") == 0;
		bool unknown = i >= n || strcmp(name, "unknown") == 0, rest = strcmp(name, "other VM") == 0;
		unsigned code = idle ? 0 : host ? 1 : unknown ? OWNER_UNKNOWN : rest ? OWNER_OTHER : next;
		next += code == next && next < OWNER_OTHER - 1;
		v->code[i] = (uint8_t)code;
		v->severity[i] = 1;
	}
	v->severity[0] = 0;
	v->code[HISTORY_STATES - 1] = HISTORY_STATES - 1;
	v->severity[HISTORY_STATES - 1] = 0;
}

/* A request that is yielded waits for its thread to come back to it. */
static void learn_requests(const struct app *app, struct vocabulary *v)
{
	uint32_t attr = app->rows.requests ? app->rows.request[0].state : HISTORY_NONE;
	unsigned n = attr == HISTORY_NONE ? 0 : history_state_count(app->h, attr);
	*v = app->look.thread;
	for (unsigned i = 0; i + 1 < HISTORY_STATES; i++) {
		const char *name = i < n ? history_state_name(app->h, attr, i) : "";
		v->code[i] = strcmp(name, "running") == 0 ? VIS_RUNNING : strcmp(name, "yielded") == 0 ? VIS_BLOCKED : VIS_UNKNOWN;
	}
}

/* Name of the machine that has this code; NULL for none. */
static const char *owner_name(const struct app *app, unsigned code)
{
	for (uint32_t c = 0; c < app->topo.cpus; c++) {
		uint32_t attr = app->topo.cpu[c].owner;
		for (unsigned i = 0; attr != HISTORY_NONE && i < history_state_count(app->h, attr); i++)
			if (app->look.owner[c].code[i] == code)
				return history_state_name(app->h, attr, i);
		if (attr != HISTORY_NONE)
			return NULL;
	}
	return NULL;
}

/* The first of these that is printable and not taken, upper case; 0 for none. */
static char free_letter(const char *from, const bool taken[128])
{
	for (; *from; from++) {
		int c = toupper((unsigned char)*from);
		if (c > ' ' && c < 127 && !taken[c])
			return (char)c;
	}
	return 0;
}

/* A machine's first letter, upper case; when an earlier one has that, the next of its name that is free, or any. */
static void learn_letters(struct app *app)
{
	bool taken[128] = { ['.'] = true, ['?'] = true };
	char *letter = app->look.letter;
	memset(letter, '?', sizeof app->look.letter);
	letter[0] = '.';
	letter[1] = 'h';
	letter[OWNER_OTHER] = '+';
	for (unsigned k = 2; k < OWNER_OTHER; k++) {
		const char *name = owner_name(app, k);
		letter[k] = free_letter(name ? name : "", taken);
		if (!letter[k])
			letter[k] = free_letter("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", taken);
		letter[k] = letter[k] ? letter[k] : '?';
		taken[(unsigned char)letter[k]] = true;
	}
}

void look_learn(struct app *app)
{
	uint32_t vcpu = HISTORY_NONE, thread = HISTORY_NONE;
	free(app->look.owner);
	app->look.owner = mem_new(app->topo.cpus, sizeof *app->look.owner);
	for (uint32_t c = 0; c < app->topo.cpus; c++)
		if (vcpu == HISTORY_NONE)
			vcpu = app->topo.cpu[c].status;
	for (uint32_t t = 0; t < app->topo.threads && thread == HISTORY_NONE; t++)
		thread = app->topo.thread[t].status;
	learn_states(app, vcpu, true, &app->look.vcpu);
	learn_states(app, thread, false, &app->look.thread);
	learn_requests(app, &app->look.request);
	for (uint32_t c = 0; c < app->topo.cpus; c++)
		learn_owners(app, app->topo.cpu[c].owner, &app->look.owner[c]);
	learn_letters(app);
}

void look_set_theme(struct app *app, const struct theme *theme)
{
	app->look.theme = *theme;
	theme_palette(&app->look.theme, app->look.depth, &app->look.palette);
	look_learn(app);
}

void look_set_depth(struct app *app, enum depth depth)
{
	app->look.depth = depth;
	theme_palette(&app->look.theme, app->look.depth, &app->look.palette);
}

void look_next_tier(struct app *app)
{
	struct look *l = &app->look;
	l->tier = l->tier == TIER_ASCII ? l->best_tier : (enum tier)(l->tier - 1);
	app_say(app, "glyphs: %s", tier_name[l->tier]);
}

const char *look_owner(const struct app *app, unsigned code, char *letter, struct style *style)
{
	uint32_t vms = 0;
	for (uint32_t m = 0; m < app->topo.machines; m++)
		vms += app->topo.machine[m].kind == MACHINE_VM;
	*letter = code < HISTORY_STATES ? app->look.letter[code] : '?';
	*style = app->look.palette.owner[code % OWNERS];
	return code == OWNER_OTHER && vms <= OWNER_OTHER - 2 ? NULL : owner_name(app, code);
}

const char *look_code_label(const struct app *app, struct row_id row, unsigned code)
{
	const struct topo_machine *m = &app->topo.machine[row_machine(&app->rows, row)];
	bool owners = m->kind == MACHINE_HOST && (row.kind == ROW_CPU || row.kind == ROW_MACHINE);
	if (!owners)
		return code < VIS_COUNT ? app->look.theme.state[code].label : "?";
	const char *name = code == HISTORY_STATES - 1 ? "nothing" : owner_name(app, code);
	return name ? name : "?";
}

/* ---- What a row is made of ------------------------------------------------------------------------------------ */

static uint32_t machine_attrs(const struct app *app, const struct topo_machine *m, uint32_t *attr)
{
	uint32_t n = 0;
	for (uint32_t c = m->cpu; c < m->cpu + m->cpus; c++)
		attr[n++] = m->kind == MACHINE_HOST ? app->topo.cpu[c].owner : app->topo.cpu[c].status;
	for (uint32_t t = m->thread; m->cpus == 0 && t < m->thread + m->threads && n < SUMMED; t++)
		attr[n++] = app->topo.thread[t].status;
	return n;
}

void look_source(const struct app *app, struct row_id row, struct cell_source *src, uint32_t **attrs_out)
{
	const struct vocabulary *v = &app->look.thread;
	const struct topo_machine *m = &app->topo.machine[row_machine(&app->rows, row)];
	uint32_t n = 0, *attr = mem_new(m->cpus > SUMMED ? m->cpus : SUMMED, sizeof *attr);
	if (row.kind == ROW_MACHINE)
		n = machine_attrs(app, m, attr);
	else if (row.kind != ROW_GROUP && row.kind != ROW_REQUESTS)
		attr[n++] = row_attr(&app->rows, row);
	if (row.kind == ROW_REQUEST)
		v = &app->look.request;
	if (row.kind == ROW_CPU || (row.kind == ROW_MACHINE && m->cpus > 0))
		v = m->kind == MACHINE_HOST ? &app->look.owner[m->cpu] : &app->look.vcpu;
	*src = (struct cell_source){ app->h, attr, n, v->code, v->severity, v->owners };
	*attrs_out = attr;
}
