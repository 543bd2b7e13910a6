/* The legend, and the theme picker, which applies the selected theme immediately. */
#include "base/base.h"
#include "ui/panes/pane.h"

static struct glyph pure_glyph(const struct app *app, unsigned code, bool owners)
{
	return appearance_glyph(app, (struct cell){ CELL_PURE, (uint8_t)code, (uint8_t)code, CELL_PARTS }, owners);
}

static void add_states(const struct app *app, struct pager *p)
{
	pager_add(p, -1, "States, worst first")->heading = true;
	for (int v = VIS_COUNT - 1; v > VIS_NONE; v--) {
		const struct theme_state *s = &app->appearance.theme.state[v];
		pager_add(p, -1, "%c %-13s %s", s->letter, s->label, vis_description[v])->sample = pure_glyph(app, (unsigned)v,
		                                                                                              false);
	}
	pager_add(p, -1, "Bar height: the share of the cell spent waiting for a CPU (_: below 1/16).");
	pager_add(p, -1, "Without bars: the letter of a wait of 1/2 or more; i: a wait of 1/8 or more.");
}

static void add_provider(const struct app *app, struct pager *p)
{
	bool has_rows = false;
	for (uint32_t i = 0; i < app->catalog.cpus; i++)
		has_rows |= cpu_has_provider_row(&app->catalog, i);
	if (!has_rows)
		return;
	pager_add(p, -1, "Provider rows: what the provider took, by the guest's steal clock")->heading = true;
	static const struct { uint8_t code; const char *text; } entry[] = {
		{ VIS_VCPU_PREEMPTED, "the provider had taken the vCPU" }, { VIS_HOST_BLOCKED, "the provider had paused the VM" },
		{ VIS_UNKNOWN, "error bound: the vCPU was taken, or executed" },
	};
	for (size_t i = 0; i < sizeof entry / sizeof *entry; i++)
		pager_add(p, -1, "%c %s", app->appearance.theme.state[entry[i].code].letter, entry[i].text)->sample =
			pure_glyph(app, entry[i].code, false);
}

static void add_owners(const struct app *app, struct pager *p)
{
	char letter, shown[128];
	struct style style;
	if (!appearance_owner(app, 1, &letter, &style))
		return;
	pager_add(p, -1, "Host CPUs: who uses the CPU")->heading = true;
	for (unsigned code = 0; code <= OWNER_UNKNOWN; code++) {
		const char *name = appearance_owner(app, code, &letter, &style);
		const char *description = code == 0 ? "idle" : code == 1 ? "the host: its own tasks and interrupts"
		                   : code == OWNER_UNKNOWN ? vis_description[VIS_UNKNOWN] : NULL;
		if (description || name)
			pager_add(p, -1, "%c %s", letter, description ? description : text_escape(shown, sizeof shown, name))->sample =
				pure_glyph(app, code, true);
	}
}

static void legend_make_lines(struct app *app, struct pane *pane)
{
	struct pager *p = &((struct list *)pane)->pager;
	pager_open(p, true, "legend and themes");
	add_states(app, p);
	add_provider(app, p);
	add_owners(app, p);
	pager_add(p, -1, "Themes (now: %s)", app->appearance.theme.name)->heading = true;
	for (unsigned i = 0; theme_shipped_name(i); i++) {
		struct theme t;
		struct error err = ERROR_INIT;
		if (theme_load(&t, theme_shipped_name(i), &err) == 0)
			pager_add(p, i, "  %-12s %s", t.name, t.about);
		if (strcmp(theme_shipped_name(i), app->appearance.theme.name) == 0)
			p->at = p->len - 1;
	}
	pager_wrap(p, app->w);
}

static void legend_apply_theme(struct app *app, struct pane *pane, int64_t tag)
{
	struct error err = ERROR_INIT;
	struct theme theme;
	const char *name = tag >= 0 ? theme_shipped_name((unsigned)tag) : NULL;
	if (!name)
		return;
	if (theme_load(&theme, name, &err) < 0) {
		app_fail(app, &err);
		return;
	}
	appearance_set_theme(app, &theme);
	list_arrange(app, pane);
}

const struct pane_ops themes_list = {
	.size = sizeof(struct list), .is_list = true, .arrange = legend_make_lines, .pick = legend_apply_theme,
	.move = legend_apply_theme, .release = list_release,
};
