#include "cli/scene.h"

#include "cli/build.h"

int scene_open(struct scene *s, char *what, const struct window_options *when, struct error *err)
{
	*s = (struct scene){ .h = open_named(what, err) };
	if (!s->h || topo_open(&s->topo, s->h, err))
		return -1;
	return window_parse(&s->window, when, s->h, err);
}

int scene_close(struct scene *s, int rc, struct error *err)
{
	topo_release(&s->topo);
	return close_what(s->h, rc, err);
}

struct value value_system(const struct topo *topo, int32_t system)
{
	return system < 0 ? VAL_NONE : VAL_TEXT(topo->machine[system].name);
}

struct value value_tid(int32_t tid)
{
	return tid < 0 ? VAL_NONE : VAL_INT(tid);
}
