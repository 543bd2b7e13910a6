/* Maps the states of a history to colours and letters, and rows to the attributes that they show. Glyphs are in glyph.c. */
#include "ui/widgets/appearance.h"

#include <ctype.h>

#include "base/base.h"
#include "ui/core/app.h"

#define SUMMED_THREADS_MAX 64  /* threads that are summed for a machine without CPUs (container) */

const char *const tier_name[TIERS] = { [TIER_ASCII] = "ascii", [TIER_CELLS] = "cells", [TIER_BLOCKS] = "blocks" };

/* ---- States --------------------------------------------------------------------------------------------------------- */

/* Maps the states of an attribute to enum vis, by name. vcpu: the attribute belongs to a vCPU. */
static void map_states(const struct app *app, uint32_t attr, bool vcpu, struct vocabulary *v)
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
		v->severity[c] = app->appearance.theme.state[c].severity;
}

/* Maps the owners of a pCPU to codes: 0 idle, 1 the host, then the VMs. The last state stands for a null value. */
static void map_owners(const struct app *app, uint32_t attr, struct vocabulary *v)
{
	unsigned n = attr == HISTORY_NONE ? 0 : history_state_count(app->h, attr), next = 2;
	v->owners = true;
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		const char *name = i < n ? history_state_name(app->h, attr, i) : "";
		bool idle = strcmp(name, "idle") == 0, host = strcmp(name, "host") == 0;
		bool unknown = i >= n || strcmp(name, "unknown") == 0, other = strcmp(name, "other VM") == 0;
		unsigned code = idle ? 0 : host ? 1 : unknown ? OWNER_UNKNOWN : other ? OWNER_OTHER : next;
		next += code == next && next < OWNER_OTHER - 1;
		v->code[i] = (uint8_t)code;
		v->severity[i] = 1;
	}
	v->severity[0] = 0;
	v->code[HISTORY_STATES - 1] = HISTORY_STATES - 1;
	v->severity[HISTORY_STATES - 1] = 0;
}

/* Maps the states of requests. A yielded request is shown as blocked: it waits until its thread resumes it. */
static void map_request_states(const struct app *app, struct vocabulary *v)
{
	uint32_t attr = app->rows.requests ? app->rows.request[0].state : HISTORY_NONE;
	unsigned n = attr == HISTORY_NONE ? 0 : history_state_count(app->h, attr);
	*v = app->appearance.thread;
	for (unsigned i = 0; i + 1 < HISTORY_STATES; i++) {
		const char *name = i < n ? history_state_name(app->h, attr, i) : "";
		v->code[i] = strcmp(name, "running") == 0 ? VIS_RUNNING : strcmp(name, "yielded") == 0 ? VIS_BLOCKED : VIS_UNKNOWN;
	}
}

/* Maps the reasons for which a vCPU is off the CPU. Null: the provider did not take it. */
static void map_provider_states(const struct app *app, struct vocabulary *v)
{
	*v = app->appearance.vcpu;
	for (unsigned i = 0; i + 1 < HISTORY_STATES; i++) {
		const unsigned reason = app->catalog.out_reason[i];
		v->code[i] = reason == OUT_PROVIDER_PAUSE ? VIS_HOST_BLOCKED : VIS_VCPU_PREEMPTED;
	}
}

/* Returns the name of the owner with this code; NULL: none. */
static const char *owner_name(const struct app *app, unsigned code)
{
	for (uint32_t c = 0; c < app->catalog.cpus; c++) {
		uint32_t attr = app->catalog.cpu[c].owner;
		for (unsigned i = 0; attr != HISTORY_NONE && i < history_state_count(app->h, attr); i++)
			if (app->appearance.owner[c].code[i] == code)
				return history_state_name(app->h, attr, i);
		if (attr != HISTORY_NONE)
			return NULL;
	}
	return NULL;
}

/* Returns the first printable character of the text that is not used, in upper case; 0: none. */
static char unused_letter(const char *from, const bool used[128])
{
	for (; *from; from++) {
		int c = toupper((unsigned char)*from);
		if (c > ' ' && c < 127 && !used[c])
			return (char)c;
	}
	return 0;
}

/* Returns the first lower-case letter that is not used; 0: none. The host has h, waits in letters have i. */
static char unused_lower_case(const bool used[128])
{
	for (char c = 'a'; c <= 'z'; c++)
		if (c != 'h' && c != 'i' && !used[(unsigned char)c])
			return c;
	return 0;
}

/* Assigns a letter to each VM: the first character of its name that is not used, in upper case, otherwise any unused
 * letter or digit. */
static void assign_letters(struct app *app)
{
	bool used[128] = { ['.'] = true, ['?'] = true };
	char *letter = app->appearance.letter;
	memset(letter, '?', sizeof app->appearance.letter);
	letter[0] = '.';
	letter[1] = 'h';
	letter[OWNER_OTHER] = '+';
	for (unsigned k = 2; k < OWNER_OTHER; k++) {
		const char *name = owner_name(app, k);
		letter[k] = unused_letter(name ? name : "", used);
		if (!letter[k])
			letter[k] = unused_letter("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", used);
		if (!letter[k])
			letter[k] = unused_lower_case(used);
		letter[k] = letter[k] ? letter[k] : '?';
		used[(unsigned char)letter[k]] = true;
	}
}

void appearance_read_states(struct app *app)
{
	uint32_t vcpu = HISTORY_NONE, thread = HISTORY_NONE;
	free(app->appearance.owner);
	app->appearance.owner = mem_new(app->catalog.cpus, sizeof *app->appearance.owner);
	for (uint32_t c = 0; c < app->catalog.cpus; c++)
		if (vcpu == HISTORY_NONE)
			vcpu = app->catalog.cpu[c].status;
	for (uint32_t t = 0; t < app->catalog.threads && thread == HISTORY_NONE; t++)
		thread = app->catalog.thread[t].status;
	map_states(app, vcpu, true, &app->appearance.vcpu);
	map_states(app, thread, false, &app->appearance.thread);
	map_request_states(app, &app->appearance.request);
	map_provider_states(app, &app->appearance.provider);
	for (uint32_t c = 0; c < app->catalog.cpus; c++)
		map_owners(app, app->catalog.cpu[c].owner, &app->appearance.owner[c]);
	assign_letters(app);
}

void appearance_follow_light(struct app *app)
{
	struct theme light;
	if (app->appearance.follows_background && theme_load(&light, THEME_LIGHT, NULL) == 0)
		appearance_set_theme(app, &light);
}

void appearance_set_theme(struct app *app, const struct theme *theme)
{
	app->appearance.theme = *theme;
	app->appearance.follows_background = false;
	theme_palette(&app->appearance.theme, app->appearance.depth, &app->appearance.palette);
	appearance_read_states(app);
}

void appearance_set_depth(struct app *app, enum depth depth)
{
	app->appearance.depth = depth;
	theme_palette(&app->appearance.theme, app->appearance.depth, &app->appearance.palette);
}

void appearance_next_tier(struct app *app)
{
	struct appearance *l = &app->appearance;
	l->tier = l->tier == TIER_ASCII ? l->best_tier : (enum tier)(l->tier - 1);
	app_message(app, "glyphs: %s", tier_name[l->tier]);
}

const char *appearance_owner(const struct app *app, unsigned code, char *letter, struct style *style)
{
	uint32_t vms = 0;
	for (uint32_t m = 0; m < app->catalog.machines; m++)
		vms += app->catalog.machine[m].kind == MACHINE_VM;
	*letter = code < HISTORY_STATES ? app->appearance.letter[code] : '?';
	*style = app->appearance.palette.owner[code % OWNERS];
	return code == OWNER_OTHER && vms <= OWNER_OTHER - 2 ? NULL : owner_name(app, code);
}

const char *appearance_code_label(const struct app *app, struct row_id row, unsigned code)
{
	const struct catalog_machine *m = &app->catalog.machine[row_machine(&app->rows, row)];
	bool owners = m->kind == MACHINE_HOST && (row.kind == ROW_CPU || row.kind == ROW_MACHINE);
	if (row.kind == ROW_PROVIDER && code == VIS_VCPU_PREEMPTED)
		return "taken";
	if (row.kind == ROW_PROVIDER && code == VIS_HOST_BLOCKED)
		return "paused";
	if (!owners)
		return code < VIS_COUNT ? app->appearance.theme.state[code].label : "?";
	const char *name = code == HISTORY_STATES - 1 ? "nothing" : owner_name(app, code);
	return name ? name : "?";
}

/* ---- Sources of rows ------------------------------------------------------------------------------------------------ */

static uint32_t machine_attrs(const struct app *app, const struct catalog_machine *m, uint32_t *attr)
{
	uint32_t n = 0;
	for (uint32_t c = m->cpu; c < m->cpu + m->cpus; c++)
		attr[n++] = m->kind == MACHINE_HOST ? app->catalog.cpu[c].owner : app->catalog.cpu[c].status;
	for (uint32_t t = m->thread; m->cpus == 0 && t < m->thread + m->threads && n < SUMMED_THREADS_MAX; t++)
		attr[n++] = app->catalog.thread[t].status;
	return n;
}

void appearance_cell_source(const struct app *app, struct row_id row, struct cell_source *src, uint32_t **attrs_out)
{
	const struct vocabulary *v = &app->appearance.thread;
	const struct catalog_machine *m = &app->catalog.machine[row_machine(&app->rows, row)];
	uint32_t n = 0, *attr = mem_new(m->cpus > SUMMED_THREADS_MAX ? m->cpus : SUMMED_THREADS_MAX, sizeof *attr);
	if (row.kind == ROW_MACHINE)
		n = machine_attrs(app, m, attr);
	else if (row.kind == ROW_MACHINE || !row_folds(row))
		attr[n++] = row_attr(&app->rows, row);
	if (row.kind == ROW_REQUEST)
		v = &app->appearance.request;
	if (row.kind == ROW_PROVIDER)
		v = &app->appearance.provider;
	if (row.kind == ROW_CPU || (row.kind == ROW_MACHINE && m->cpus > 0))
		v = m->kind == MACHINE_HOST ? &app->appearance.owner[m->cpu] : &app->appearance.vcpu;
	*src = (struct cell_source){ app->h, attr, n, v->code, v->severity, v->owners };
	*attrs_out = attr;
}
