#include "cli/target_arg.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

#define LISTED 20  /* of those that may be meant */

struct namesake {
	struct subject who;
	int64_t start, end, lost;
};

static const struct column columns[] = {
	{ "subject", "who", COL_TEXT },
	{ "start", "from", COL_CLOCK },
	{ "end", "to", COL_CLOCK },
	{ "lost_ns", "lost", COL_DURATION },
};

static int by_loss(const void *pa, const void *pb)
{
	const struct namesake *a = pa, *b = pb;
	if (a->lost != b->lost)
		return (a->lost < b->lost) - (a->lost > b->lost);
	return (a->start > b->start) - (a->start < b->start);
}

/* With their lives and losses, the worst first; the caller frees.  NULL: error. */
static struct namesake *rank(const struct scene *s, const struct subject *found, size_t n, struct error *err)
{
	struct namesake *c = mem_new(n, sizeof *c);
	for (size_t i = 0; i < n; i++) {
		c[i] = (struct namesake){ .who = found[i], .start = history_begin(s->h), .end = history_end(s->h) };
		if (topo_life(&s->topo, &found[i], &c[i].start, &c[i].end, err) < 0 ||
		    steal_time(&s->topo, &found[i], c[i].start, c[i].end, &c[i].lost, err) < 0) {
			free(c);
			return NULL;
		}
	}
	qsort(c, n, sizeof *c, by_loss);
	return c;
}

static int list(const struct scene *s, const struct subject *found, size_t n, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("who", columns);
	struct namesake *c = rank(s, found, n, err);
	if (c) {
		struct report *r = report_begin(stderr, REPORT_WHOLE(FORMAT_TEXT), &shape, NULL);
		for (size_t i = 0; i < n && i < LISTED; i++) {
			char name[PARTY_TEXT];
			report_row(r, (struct value[]){ VAL_SHOWN(topo_subject_text(&s->topo, &c[i].who, name, sizeof name)),
			                                VAL_INT(c[i].start), VAL_INT(c[i].end), VAL_INT(c[i].lost) });
		}
		report_end(r, NULL);
		if (n > LISTED)
			fprintf(stderr, "and %zu more, that lost less\n", n - LISTED);
	}
	free(c);
	return c ? 0 : -1;
}

int who_all(const struct scene *s, const char *text, struct subject **out, size_t *n, struct error *err)
{
	struct subject one;
	struct namesake *c = NULL;
	*out = NULL;
	if (topo_find_subjects(&s->topo, text, out, n, err) < 0)
		return -1;
	if (*n == 0)
		return topo_one_subject(&s->topo, text, *out, 0, &one, err);
	c = rank(s, *out, *n, err);
	for (size_t i = 0; c && i < *n; i++)
		(*out)[i] = c[i].who;
	free(c);
	return c ? 0 : -1;
}

int who_parse(const struct scene *s, const char *text, struct subject *out, struct error *err)
{
	struct subject *found = NULL;
	size_t n = 0;
	int rc = topo_find_subjects(&s->topo, text, &found, &n, err);
	if (rc == 0 && n > 1)
		rc = list(s, found, n, err);
	if (rc == 0)
		rc = topo_one_subject(&s->topo, text, found, n, out, err);
	free(found);
	return rc;
}

bool who_is_pcpu(const struct scene *s, const struct subject *who)
{
	return who->kind == SUBJECT_CPU && s->topo.machine[s->topo.cpu[who->index].machine].kind != MACHINE_VM;
}

int who_parse_victim(const struct scene *s, const char *text, struct subject *out, struct error *err)
{
	if (who_parse(s, text, out, err))
		return -1;
	if (who_is_pcpu(s, out))
		return error_set(err, STATUS_USAGE, "name a machine, a vCPU or a thread; stealscope flow tells who had this CPU",
		                 "%s: a physical CPU, which wants nothing itself", text);
	return 0;
}

int who_parse_vcpus(const struct scene *s, const char *text, struct subject *out, struct error *err)
{
	if (who_parse(s, text, out, err))
		return -1;
	if (out->kind == SUBJECT_THREAD || who_is_pcpu(s, out))
		return error_set(err, STATUS_USAGE, "name a VM, or a vCPU as Debian/CPU0", "%s: not a machine or vCPU", text);
	return 0;
}
