/* stealscope steal: who took how much from whom. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/scene.h"

static const struct column columns[] = {
	{ "victim", "victim", COL_TEXT },
	{ "thief", "thief", COL_TEXT },
	{ "ns", "time", COL_DURATION },
	{ "share", "share", COL_SHARE },
};

static const char *const by_names[] = { "machine", "thread", NULL };

static char *party(const struct topo *topo, const struct steal *s, const struct steal_party *p, char buf[200])
{
	const char *name = p->name < s->names ? s->name[p->name] : NULL;
	return flow_party_text(topo, p->system, p->tid, name, (enum flow_kind)p->kind, buf, 200);
}

static int print_matrix(const struct scene *scene, const char *only, enum steal_by by, enum report_format format,
                        struct error *err)
{
	struct subject who;
	struct steal s;
	if (only && topo_parse_subject(&scene->topo, only, &who, err))
		return -1;
	if (steal_matrix(&scene->topo, by, only ? &who : NULL, scene->window.from, scene->window.to, &s, err))
		return -1;
	struct report *r = report_begin(stdout, format, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < s.cells; i++) {
		char victim[200], thief[200];
		report_row(r, (struct value[]){ VAL_TEXT(party(&scene->topo, &s, &s.cell[i].victim, victim)),
		                                VAL_TEXT(party(&scene->topo, &s, &s.cell[i].thief, thief)),
		                                VAL_INT(s.cell[i].ns), VAL_REAL(s.cell[i].share) });
	}
	report_end(r);
	steal_release(&s);
	return 0;
}

int cmd_steal(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	int by = STEAL_BY_MACHINE, format = FORMAT_TEXT;
	const struct opt opt[] = {
		WINDOW_OPTIONS(&when),
		{ "by", 0, OPT_CHOICE, "WHOM", "machine (default) or thread", &by, by_names },
		FORMAT_OPTION(&format),
	};
	const struct opts opts = { "steal WHAT [VM[/CPUn|/TID]]", "Victims and thieves: who took how much from whom.", opt,
	                           sizeof opt / sizeof *opt, 1, 2 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	struct scene s;
	int rc = scene_open(&s, argv[first], &when, err);
	if (rc == 0)
		rc = print_matrix(&s, argc - first > 1 ? argv[first + 1] : NULL, (enum steal_by)by,
		                  (enum report_format)format, err);
	return scene_close(&s, rc, err);
}
