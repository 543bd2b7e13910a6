/* The changes of a what-if question, as people write them. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compare/compare.h"

#define FORMS "write 'without WHO', 'pin WHO -> CPUn', 'free WHO', 'add CPU', 'weight WHO N' or 'no quota WHO'"
#define WEIGHT_MOST 10000

static void add_thread(struct whatif_change *c, size_t *cap, int32_t thread)
{
	for (size_t i = 0; i < c->threads; i++)
		if (c->thread[i] == (uint32_t)thread)
			return;
	*ARRAY_PUSH(c->thread, c->threads, *cap) = (uint32_t)thread;
}

static void add_vcpu(const struct topo *topo, struct whatif_change *c, size_t *cap, uint32_t cpu)
{
	const int32_t thread = topo->cpu[cpu].host;
	if (thread >= 0 && topo->thread[thread].machine == 0)
		add_thread(c, cap, thread);
}

static int64_t process_of(const struct topo *topo, uint32_t thread)
{
	const struct topo_thread *th = &topo->thread[thread];
	int64_t start, end;
	struct interval iv;
	if (th->pid == HISTORY_NONE || topo_life(topo, &(struct subject){ SUBJECT_THREAD, thread }, &start, &end, NULL) <= 0 ||
	    history_stab(topo->h, th->pid, end, &iv, NULL))
		return HISTORY_NULL;
	return iv.value;
}

/* A VM goes with all of its process: its monitor, its I/O threads. */
static void add_processes(const struct topo *topo, struct whatif_change *c, size_t *cap)
{
	const size_t vcpus = c->threads;
	const struct topo_machine *host = &topo->machine[0];
	for (size_t i = 0; i < vcpus; i++) {
		const int64_t pid = process_of(topo, c->thread[i]);
		for (uint32_t k = host->thread; pid != HISTORY_NULL && k < host->thread + host->threads; k++)
			if (process_of(topo, k) == pid)
				add_thread(c, cap, (int32_t)k);
	}
}

static int add_subject(const struct topo *topo, struct whatif_change *c, size_t *cap, const struct subject *s,
                       struct error *err)
{
	char name[PARTY_TEXT];
	const struct topo_machine *m = &topo->machine[subject_machine(topo, s)];
	const size_t before = c->threads;
	if (s->kind == SUBJECT_THREAD && m->kind == MACHINE_HOST)
		add_thread(c, cap, (int32_t)s->index);
	else if (s->kind == SUBJECT_CPU && m->kind == MACHINE_VM)
		add_vcpu(topo, c, cap, s->index);
	else if (s->kind == SUBJECT_MACHINE && m->kind == MACHINE_VM)
		for (uint32_t i = m->cpu; i < m->cpu + m->cpus; i++)
			add_vcpu(topo, c, cap, i);
	if (s->kind == SUBJECT_MACHINE && c->kind == WHATIF_WITHOUT && c->threads > before)
		add_processes(topo, c, cap);
	if (c->threads > before)
		return 0;
	topo_subject_text(topo, s, name, sizeof name);
	if (s->kind == SUBJECT_THREAD && m->kind == MACHINE_VM)
		return error_set(err, STATUS_INPUT, "name its VM, a vCPU or a thread of the host",
		                 "%s: schedulers of guests are not replayed", name);
	return error_set(err, STATUS_INPUT, "name a VM of the host, a vCPU or a thread of the host",
	                 "%s: no thread of the host stands for it", name);
}

static int parse_who(const struct topo *topo, const char *text, struct whatif_change *c, struct error *err)
{
	struct subject *found = NULL, one;
	size_t n = 0, cap = 0;
	int rc = topo_find_subjects(topo, text, &found, &n, err);
	if (rc == 0 && n == 0)
		rc = topo_one_subject(topo, text, found, n, &one, err);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = add_subject(topo, c, &cap, &found[i], err);
	free(found);
	return rc;
}

static bool parse_number(const char *text, long most, long *out)
{
	char *end;
	errno = 0;
	*out = strtol(text, &end, 10);
	return end > text && *end == '\0' && isdigit((unsigned char)*text) && errno == 0 && *out <= most;
}

/* "WHO LAST": cuts the last word off; NULL: there is none. */
static char *last_word(char *text)
{
	char *space = strrchr(text, ' ');
	if (!space)
		return NULL;
	*space = '\0';
	char *end = space;
	while (end > text && end[-1] == ' ')
		*--end = '\0';
	if (end > text + 3 && !strcmp(end - 3, " ->"))
		end[-3] = '\0';
	return space + 1;
}

static bool begins(const char **text, const char *with)
{
	const size_t n = strlen(with);
	if (strncmp(*text, with, n))
		return false;
	*text += n;
	return true;
}

/* What stands behind the word, if it is a number in its place. */
static bool parse_operand(struct whatif_change *c, const char *last)
{
	long n;
	if (c->kind == WHATIF_PIN && !strncmp(last, "CPU", 3))
		last += 3;
	if (!parse_number(last, c->kind == WHATIF_PIN ? 62 : WEIGHT_MOST, &n) || (c->kind == WHATIF_WEIGHT && n == 0))
		return false;
	c->cpu = (unsigned)n;
	c->weight = (double)n / 100;
	return true;
}

int whatif_parse(const struct topo *topo, const char *text, struct whatif_change *out, struct error *err)
{
	const char *rest = text;
	*out = (struct whatif_change){ .kind = WHATIF_ADD_CPU };
	if (!strcmp(text, "add CPU"))
		return 0;
	bool known = true;
	if (begins(&rest, "without "))
		out->kind = WHATIF_WITHOUT;
	else if (begins(&rest, "no quota "))
		out->kind = WHATIF_NO_QUOTA;
	else if (begins(&rest, "pin "))
		out->kind = WHATIF_PIN;
	else if (begins(&rest, "free "))
		out->kind = WHATIF_FREE;
	else if (begins(&rest, "weight "))
		out->kind = WHATIF_WEIGHT;
	else
		known = false;
	char *who = mem_dup(rest), *last = NULL;
	if (known && (out->kind == WHATIF_PIN || out->kind == WHATIF_WEIGHT))
		known = (last = last_word(who)) && parse_operand(out, last);
	int rc = 0;
	if (last && !known)
		rc = error_set(err, STATUS_USAGE, out->kind == WHATIF_PIN ? "write 'pin WHO -> CPUn'" :
		               "a number from 1 to 10000, of which 100 is nice 0", "%s: '%s' is no %s", text, last,
		               out->kind == WHATIF_PIN ? "CPU" : "weight");
	else if (!known || !*who)
		rc = error_set(err, STATUS_USAGE, FORMS, "not a change: '%s'", text);
	if (rc == 0)
		rc = parse_who(topo, who, out, err);
	free(who);
	return rc;
}

void whatif_change_release(struct whatif_change *c)
{
	free(c->thread);
	*c = (struct whatif_change){ 0 };
}

/* ---- What they say together */

static bool places(const struct whatif_change *c)
{
	return c->kind == WHATIF_PIN || c->kind == WHATIF_FREE;
}

static bool contradict(const struct whatif_change *a, const struct whatif_change *b)
{
	if (a->kind == WHATIF_WITHOUT || b->kind == WHATIF_WITHOUT)
		return a->kind != b->kind;
	if (places(a) && places(b))
		return a->kind != b->kind || a->cpu != b->cpu;
	return a->kind == WHATIF_WEIGHT && b->kind == WHATIF_WEIGHT && (a->weight < b->weight || a->weight > b->weight);
}

/* Somebody whom both are about; -1: nobody. */
static int64_t in_both(const struct whatif_change *a, const struct whatif_change *b)
{
	for (size_t i = 0; i < a->threads; i++)
		for (size_t k = 0; k < b->threads; k++)
			if (a->thread[i] == b->thread[k])
				return a->thread[i];
	return -1;
}

static int check_cpus(const struct topo *topo, const struct whatif_change *change, size_t n, struct error *err)
{
	const struct topo_machine *host = &topo->machine[0];
	const unsigned first = topo->cpu[host->cpu + host->cpus - 1].number + 1;
	unsigned more = 0;
	for (size_t i = 0; i < n; i++)
		more += change[i].kind == WHATIF_ADD_CPU;
	if (first + more > WHATIF_CPUS)
		return error_set(err, STATUS_INPUT, NULL, "%s: a host of %u CPUs: replayed are %d at most", history_file(topo->h),
		                 first + more, WHATIF_CPUS);
	for (size_t i = 0; i < n; i++)
		if (change[i].kind == WHATIF_PIN && topo_find_cpu(topo, 0, change[i].cpu) < 0 &&
		    (change[i].cpu < first || change[i].cpu >= first + more))
			return error_set(err, STATUS_USAGE, "stealscope info lists the host's CPUs; 'add CPU' gives it one more",
			                 "the host has no CPU%u", change[i].cpu);
	return 0;
}

int whatif_check(const struct topo *topo, const struct whatif_change *change, size_t n, struct error *err)
{
	char name[PARTY_TEXT];
	if (topo->machines == 0 || topo->machine[0].kind != MACHINE_HOST || topo->machine[0].cpus == 0)
		return error_set(err, STATUS_INPUT, "record the host, too", "%s: a replay needs the host's CPUs and threads",
		                 history_file(topo->h));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++) {
			const int64_t who = contradict(&change[i], &change[k]) ? in_both(&change[i], &change[k]) : -1;
			if (who >= 0)
				return error_set(err, STATUS_USAGE, "say one thing of each", "two changes contradict each other about %s",
				                 topo_subject_text(topo, &(struct subject){ SUBJECT_THREAD, (uint32_t)who }, name,
				                                   sizeof name));
		}
	return check_cpus(topo, change, n, err);
}
