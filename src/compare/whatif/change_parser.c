/* Parser of what-if changes, and check that they are possible together. */
#include <ctype.h>
#include <errno.h>

#include "base/base.h"
#include "compare/compare.h"

#define FORMS "write 'without TARGET', 'pin TARGET -> CPUn', 'free TARGET', 'add CPU', 'weight TARGET N' or " \
	"'no quota TARGET'"
#define WEIGHT_MAX 10000

static void add_thread(struct whatif_change *c, size_t *cap, int32_t thread)
{
	for (size_t i = 0; i < c->threads; i++)
		if (c->thread[i] == (uint32_t)thread)
			return;
	*ARRAY_PUSH(c->thread, c->threads, *cap) = (uint32_t)thread;
}

static void add_vcpu(const struct catalog *catalog, struct whatif_change *c, size_t *cap, uint32_t cpu)
{
	const int32_t thread = catalog->cpu[cpu].host;
	if (thread >= 0 && catalog->thread[thread].machine == 0)
		add_thread(c, cap, thread);
}

static int64_t thread_process(const struct catalog *catalog, uint32_t thread)
{
	const struct catalog_thread *th = &catalog->thread[thread];
	int64_t start, end;
	struct interval iv;
	if (th->pid == HISTORY_NONE ||
	    catalog_lifetime(catalog, &(struct target){ TARGET_THREAD, thread }, &start, &end, NULL) <= 0 ||
	    history_stab(catalog->h, th->pid, end, &iv, NULL))
		return HISTORY_NULL;
	return iv.value;
}

/* Adds all threads of the vCPUs' processes: a VM includes the VMM's main and I/O threads. */
static void add_processes(const struct catalog *catalog, struct whatif_change *c, size_t *cap)
{
	const size_t vcpus = c->threads;
	const struct catalog_machine *host = &catalog->machine[0];
	for (size_t i = 0; i < vcpus; i++) {
		const int64_t pid = thread_process(catalog, c->thread[i]);
		for (uint32_t k = host->thread; pid != HISTORY_NULL && k < host->thread + host->threads; k++)
			if (thread_process(catalog, k) == pid)
				add_thread(c, cap, (int32_t)k);
	}
}

static int add_target(const struct catalog *catalog, struct whatif_change *c, size_t *cap, const struct target *s,
                       struct error *err)
{
	char name[ACTOR_TEXT];
	const struct catalog_machine *m = &catalog->machine[target_machine(catalog, s)];
	const size_t before = c->threads;
	if (s->kind == TARGET_THREAD && m->kind == MACHINE_HOST)
		add_thread(c, cap, (int32_t)s->index);
	else if (s->kind == TARGET_CPU && m->kind == MACHINE_VM)
		add_vcpu(catalog, c, cap, s->index);
	else if (s->kind == TARGET_MACHINE && m->kind == MACHINE_VM)
		for (uint32_t i = m->cpu; i < m->cpu + m->cpus; i++)
			add_vcpu(catalog, c, cap, i);
	if (s->kind == TARGET_MACHINE && c->kind == WHATIF_WITHOUT && c->threads > before)
		add_processes(catalog, c, cap);
	if (c->threads > before)
		return 0;
	catalog_target_text(catalog, s, name, sizeof name);
	if (s->kind == TARGET_THREAD && m->kind == MACHINE_VM)
		return error_set(err, STATUS_INPUT, "name its VM, a vCPU or a thread of the host",
		                 "%s: schedulers of guests are not replayed", name);
	return error_set(err, STATUS_INPUT, "name a VM of the host, a vCPU or a thread of the host",
	                 "%s: no thread of the host stands for it", name);
}

static int parse_target(const struct catalog *catalog, const char *text, struct whatif_change *c, struct error *err)
{
	struct target *found = NULL, one;
	size_t n = 0, cap = 0;
	int rc = catalog_find_targets(catalog, text, &found, &n, err);
	if (rc == 0 && n == 0)
		rc = catalog_single_target(catalog, text, found, n, &one, err);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = add_target(catalog, c, &cap, &found[i], err);
	free(found);
	return rc;
}

static bool parse_number(const char *text, long max, long *out)
{
	char *end;
	errno = 0;
	*out = strtol(text, &end, 10);
	return end > text && *end == '\0' && isdigit((unsigned char)*text) && errno == 0 && *out <= max;
}

/* Splits "TARGET LAST" or "TARGET -> LAST": cuts the last word off `text` and returns it; NULL: there is only one word. */
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

static bool skip_keyword(const char **text, const char *with)
{
	const size_t n = strlen(with);
	if (strncmp(*text, with, n))
		return false;
	*text += n;
	return true;
}

/* Parses the last word of `pin` and `weight`; returns false if it is invalid. */
static bool parse_operand(struct whatif_change *c, const char *last)
{
	long n;
	if (c->kind == WHATIF_PIN && !strncmp(last, "CPU", 3))
		last += 3;
	if (!parse_number(last, c->kind == WHATIF_PIN ? 62 : WEIGHT_MAX, &n) || (c->kind == WHATIF_WEIGHT && n == 0))
		return false;
	c->cpu = (unsigned)n;
	c->weight = (double)n / 100;
	return true;
}

int whatif_parse(const struct catalog *catalog, const char *text, struct whatif_change *out, struct error *err)
{
	const char *rest = text;
	*out = (struct whatif_change){ .kind = WHATIF_ADD_CPU };
	if (!strcmp(text, "add CPU"))
		return 0;
	bool valid = true;
	if (skip_keyword(&rest, "without "))
		out->kind = WHATIF_WITHOUT;
	else if (skip_keyword(&rest, "no quota "))
		out->kind = WHATIF_NO_QUOTA;
	else if (skip_keyword(&rest, "pin "))
		out->kind = WHATIF_PIN;
	else if (skip_keyword(&rest, "free "))
		out->kind = WHATIF_FREE;
	else if (skip_keyword(&rest, "weight "))
		out->kind = WHATIF_WEIGHT;
	else
		valid = false;
	char *target_text = mem_dup(rest), *last = NULL;
	if (valid && (out->kind == WHATIF_PIN || out->kind == WHATIF_WEIGHT))
		valid = (last = last_word(target_text)) && parse_operand(out, last);
	int rc = 0;
	if (last && !valid)
		rc = error_set(err, STATUS_USAGE, out->kind == WHATIF_PIN ? "write 'pin TARGET -> CPUn'" :
		               "a number from 1 to 10000; 100 is nice 0", "%s: '%s' is no %s", text, last,
		               out->kind == WHATIF_PIN ? "CPU" : "weight");
	else if (!valid || !*target_text)
		rc = error_set(err, STATUS_USAGE, FORMS, "not a change: '%s'", text);
	if (rc == 0)
		rc = parse_target(catalog, target_text, out, err);
	free(target_text);
	return rc;
}

void whatif_change_release(struct whatif_change *c)
{
	free(c->thread);
	*c = (struct whatif_change){ 0 };
}

/* ---- Checks of several changes */

static bool sets_cpu(const struct whatif_change *c)
{
	return c->kind == WHATIF_PIN || c->kind == WHATIF_FREE;
}

static bool changes_contradict(const struct whatif_change *a, const struct whatif_change *b)
{
	if (a->kind == WHATIF_WITHOUT || b->kind == WHATIF_WITHOUT)
		return a->kind != b->kind;
	if (sets_cpu(a) && sets_cpu(b))
		return a->kind != b->kind || a->cpu != b->cpu;
	return a->kind == WHATIF_WEIGHT && b->kind == WHATIF_WEIGHT && (a->weight < b->weight || a->weight > b->weight);
}

/* First thread affected by both changes; -1: none. */
static int64_t in_both(const struct whatif_change *a, const struct whatif_change *b)
{
	for (size_t i = 0; i < a->threads; i++)
		for (size_t k = 0; k < b->threads; k++)
			if (a->thread[i] == b->thread[k])
				return a->thread[i];
	return -1;
}

static int check_cpus(const struct catalog *catalog, const struct whatif_change *change, size_t n, struct error *err)
{
	const struct catalog_machine *host = &catalog->machine[0];
	const unsigned first = catalog->cpu[host->cpu + host->cpus - 1].number + 1;
	unsigned more = 0;
	for (size_t i = 0; i < n; i++)
		more += change[i].kind == WHATIF_ADD_CPU;
	if (first + more > WHATIF_CPUS)
		return error_set(err, STATUS_INPUT, NULL, "%s: a host of %u CPUs: replayed are %d at most",
		                 history_file(catalog->h), first + more, WHATIF_CPUS);
	for (size_t i = 0; i < n; i++)
		if (change[i].kind == WHATIF_PIN && catalog_find_cpu(catalog, 0, change[i].cpu) < 0 &&
		    (change[i].cpu < first || change[i].cpu >= first + more))
			return error_set(err, STATUS_USAGE, "stealscope info lists the host's CPUs; 'add CPU' gives it one more",
			                 "the host has no CPU%u", change[i].cpu);
	return 0;
}

int whatif_check(const struct catalog *catalog, const struct whatif_change *change, size_t n, struct error *err)
{
	char name[ACTOR_TEXT];
	if (catalog->machines == 0 || catalog->machine[0].kind != MACHINE_HOST || catalog->machine[0].cpus == 0)
		return error_set(err, STATUS_INPUT, "record the host, too", "%s: a replay needs the host's CPUs and threads",
		                 history_file(catalog->h));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++) {
			const int64_t thread = changes_contradict(&change[i], &change[k]) ? in_both(&change[i], &change[k]) : -1;
			if (thread >= 0)
				return error_set(err, STATUS_USAGE, "give one change for each",
				                 "two changes contradict each other about %s",
				                 catalog_target_text(catalog, &(struct target){ TARGET_THREAD, (uint32_t)thread }, name,
				                                     sizeof name));
		}
	return check_cpus(catalog, change, n, err);
}
