#include "cli/query_context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/timefmt.h"
#include "cli/progress_bar.h"
#include "cli/prose.h"
#include "cli/trace_input.h"
#include "index/index.h"

int scene_open(struct scene *s, char *what, const struct window_options *when, struct error *err)
{
	*s = (struct scene){ .named = what, .h = what_open_named(what, err) };
	if (!s->h || topo_open(&s->topo, s->h, err))
		return -1;
	return window_parse(&s->window, when, s->h, err);
}

int scene_close(struct scene *s, int rc, struct error *err)
{
	origin_release(&s->origin);
	topo_release(&s->topo);
	return what_close(s->h, rc, err);
}

int scene_begin(struct scene *s, const struct opts *opts, int argc, char **argv, const struct window_options *when,
                const char **whose, struct error *err)
{
	int first;
	if (opts_parse(opts, argc, argv, &first, err))
		return -1;
	*whose = argc - first > 1 ? argv[first + 1] : NULL;
	return scene_open(s, argv[first], when, err) ? scene_close(s, -1, err) : 0;
}

int scene_run(struct inquiry *q, struct error *err)
{
	struct progress_bar bar;
	struct progress progress = progress_bar_begin(&bar, NULL);
	int rc = inquiry_run(q, &progress, err);
	progress_bar_end(&bar);
	return rc;
}

void scene_about(struct scene *s, const struct subject *who, struct report_how how)
{
	origin_take(&s->origin, &s->topo, who, s->window.from, s->window.to);
	if (how.format == FORMAT_CSV)
		what_say(&s->origin.notes);
}

void scene_left_out(struct scene *s, uint64_t shown, uint64_t all, const char *rows, struct report_how how)
{
	struct notes notes = { 0 };
	if (how.format == FORMAT_TEXT || shown >= all)
		return;
	notes_add(&notes, NOTE_FACT, NULL, "%" PRIu64 " of %" PRIu64 " %s are here (--top)", shown, all, rows);
	if (how.format == FORMAT_CSV)
		what_say(&notes);
	origin_doubt(&s->origin, &notes);
}

int scene_tell_served(const struct scene *s, const struct subject *who, bool apart, struct report_how how,
                      struct error *err)
{
	char d[TIME_TEXT], name[PARTY_TEXT] = "it";
	int64_t served = 0;
	unsigned vms = 0;
	if (how.format != FORMAT_TEXT || (who && who->kind == SUBJECT_THREAD))
		return 0;
	for (uint32_t i = 0; i < s->topo.machines; i++) {
		const struct subject machine = { SUBJECT_MACHINE, i }, *of = who ? who : &machine;
		struct demand is;
		if (s->topo.machine[i].kind != MACHINE_VM || subject_machine(&s->topo, of) != i)
			continue;
		if (demand_of(&s->topo, of, s->window.from, s->window.to, &is, err))
			return -1;
		served += is.served;
		if (!who)
			topo_subject_text(&s->topo, of, name, sizeof name);
		vms++;
	}
	char *said = mem_printf("lost, too: %s in which the hypervisor worked for %s (stealscope exits)\n",
	                        time_duration(d, served), vms > 1 ? "VMs" : name);
	if (served && apart)
		putchar('\n');
	if (served)
		prose_print(said, NULL);
	free(said);
	return 0;
}

struct json_object *scene_told(const struct scene *s, struct error *err)
{
	return s->origin.told ? s->origin.told : provenance_load(s->h, err);  /* which says why there is nothing */
}
