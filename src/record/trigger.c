#include "record/trigger.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/timefmt.h"
#include "record/proc.h"
#include "record/transport.h"

#define DURATION_MAX (600 * NS_PER_S)  /* of a gap or a steal average */
#define LASTING_WAIT (3 * NS_PER_S / 2)  /* ns without a change of schedstat after which a runnable thread waits */
#define TERM_TIMEOUT 5000  /* ms for a command to end after SIGTERM */
#define REMEDY "use 'gap(web)>20ms', 'steal(web/CPU0)>30% for 1s', 'load>8', 'exit(COMMAND)' or 'signal'"

enum trigger_kind { GAP, STEAL, LOAD, EXIT, SIGNAL };

/* A watched vCPU thread and its schedstat at the last check. */
struct waiting_thread {
	int32_t pid, tid;
	long long ran, waited;  /* ns since the start of the thread */
	long long runs;         /* number of times the thread was scheduled */
	int64_t unchanged_since;  /* monotonic time of the last change of these values, ns; 0: not read yet */
};

struct trigger {
	enum trigger_kind kind;
	const char *text;
	char *argument;         /* name of a VM or vCPU, or a command */
	int64_t ns;             /* threshold of a gap, or period of a steal average, ns */
	double limit;           /* threshold of a steal share (0..1) or of the load */
	struct waiting_thread *thread;  /* watched vCPU threads */
	size_t threads, threads_cap;
	int64_t *sum;           /* total waiting time of the threads at the last n_sums checks, ns: ring buffer */
	size_t n_sums, checks;  /* checks: number of checks so far */
	pid_t child;            /* the running command; 0: none */
};

struct triggers {
	const char *root;
	struct trigger *trigger;
	size_t n;
	int64_t next;  /* time of the next check, monotonic ns */
};

/* ---- syntax */

/* Parses the argument of "gap(web)>20ms". Returns the text after the parenthesis; NULL: syntax error. */
static const char *parse_argument(struct trigger *t, const char *text)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	if (!open || !close || close <= open + 1)
		return NULL;
	t->argument = mem_printf("%.*s", (int)(close - open - 1), open + 1);
	return close + 1;
}

static bool parse_share(struct trigger *t, const char *text)
{
	char *rest;
	t->limit = strtod(text, &rest) / 100;
	t->ns = NS_PER_S;
	if (rest == text || *rest != '%' || !(t->limit > 0 && t->limit < 1))
		return false;
	rest += 1 + strspn(rest + 1, " ");
	return !*rest || (strncmp(rest, "for ", 4) == 0 && time_parse_duration(rest + 4, &t->ns));
}

static bool parse_trigger(struct trigger *t, const char *text)
{
	static const struct { const char *word; enum trigger_kind kind; } kinds[] = {
		{ "gap(", GAP }, { "steal(", STEAL }, { "load>", LOAD }, { "exit(", EXIT }, { "signal", SIGNAL },
	};
	size_t k = 0;
	char *rest;
	while (k < sizeof kinds / sizeof *kinds && strncmp(text, kinds[k].word, strlen(kinds[k].word)) != 0)
		k++;
	if (k == sizeof kinds / sizeof *kinds)
		return false;
	t->kind = kinds[k].kind;
	t->text = text;
	if (t->kind == SIGNAL)
		return !text[strlen(kinds[k].word)];
	if (t->kind == LOAD) {
		t->limit = strtod(text + 5, &rest);
		return rest > text + 5 && !*rest && t->limit > 0;
	}
	const char *more = parse_argument(t, text);
	if (!more || t->kind == EXIT)
		return more && !*more;
	if (*more++ != '>')
		return false;
	const bool valid = t->kind == GAP ? time_parse_duration(more, &t->ns) : parse_share(t, more);
	return valid && t->ns >= TRIGGER_PERIOD / 100 && t->ns <= DURATION_MAX;
}

/* Finds the threads of the vCPUs that the argument selects: "any", "web", "web/CPU0". */
static void find_threads(struct trigger *t, const struct vm *vm, size_t vms)
{
	const bool any = strcmp(t->argument, "any") == 0;
	for (size_t i = 0; i < vms; i++) {
		for (size_t k = 0; k < vm[i].vcpus; k++) {
			char *cpu = mem_printf("%s/CPU%u", vm[i].name, vm[i].vcpu[k].number);
			const bool matches = any || strcmp(t->argument, vm[i].name) == 0 || strcmp(t->argument, cpu) == 0;
			if (matches && vm[i].vcpu[k].tid)
				*ARRAY_PUSH(t->thread, t->threads,
				            t->threads_cap) = (struct waiting_thread){ .pid = vm[i].pid, .tid = vm[i].vcpu[k].tid };
			free(cpu);
		}
	}
}

struct triggers *triggers_new(const char *root, const char *const *text, size_t n, const struct vm *vm, size_t vms,
                              struct error *err)
{
	struct triggers *all = mem_new(1, sizeof *all);
	*all = (struct triggers){ .root = root, .trigger = mem_new(n, sizeof *all->trigger) };
	for (size_t i = 0; i < n; i++) {
		struct trigger *t = &all->trigger[all->n++];
		const bool valid = parse_trigger(t, text[i]);
		if (valid && t->kind <= STEAL)
			find_threads(t, vm, vms);
		if (!valid)
			error_set(err, STATUS_USAGE, REMEDY, "--trigger: syntax error in '%s'", text[i]);
		else if (t->kind <= STEAL && !t->threads)
			error_set(err, STATUS_INPUT, "stealscope record --check lists the VMs",
			          "--trigger: no running VM or vCPU has the name '%s'", t->argument);
		if (!valid || (t->kind <= STEAL && !t->threads)) {
			triggers_free(all);
			return NULL;
		}
		t->n_sums = t->kind == STEAL ? (size_t)(t->ns / TRIGGER_PERIOD) + 1 : 0;
		t->sum = mem_new(t->n_sums, sizeof *t->sum);
	}
	return all;
}

static void end_child(struct trigger *t)
{
	if (t->child > 0)
		child_end(-t->child, TERM_TIMEOUT);
	t->child = 0;
}

void triggers_free(struct triggers *t)
{
	for (size_t i = 0; t && i < t->n; i++) {
		end_child(&t->trigger[i]);
		free(t->trigger[i].argument);
		free(t->trigger[i].thread);
		free(t->trigger[i].sum);
	}
	free(t ? t->trigger : NULL);
	free(t);
}

/* ---- checks */

/* Returns the length of a wait in progress, which the kernel's sums do not include; 0: none. On a tickless CPU the
 * kernel updates the sums of a running thread only once a second, so that only longer unchanged values show a wait. */
static int64_t current_wait(const char *root, const struct waiting_thread *th, int64_t now)
{
	if (now - th->unchanged_since < LASTING_WAIT)
		return 0;
	char *state = proc_stat_word(root, th->pid, th->tid, 0);
	const bool runnable = state && strcmp(state, "R") == 0;
	free(state);
	return runnable ? now - th->unchanged_since : 0;
}

/* Returns the longest wait of a thread since the last check, including waits in progress, ns. *sum: total waiting time
 * of all threads. */
static int64_t measure_waits(const char *root, struct trigger *t, int64_t now, int64_t *sum)
{
	int64_t longest = 0;
	*sum = 0;
	for (size_t i = 0; i < t->threads; i++) {
		struct waiting_thread *th = &t->thread[i];
		char *line = proc_line(root, "/proc/%d/task/%d/schedstat", (int)th->pid, (int)th->tid);
		long long ran, waited, runs;
		int64_t wait = 0;
		if (line && sscanf(line, "%lld %lld %lld", &ran, &waited, &runs) == 3) {
			wait = waited - th->waited;
			if (!th->unchanged_since || ran != th->ran || wait || runs != th->runs)
				th->unchanged_since = now;
			th->ran = ran;
			th->waited = waited;
			th->runs = runs;
		}
		const int64_t lasting = line ? current_wait(root, th, now) : 0;
		wait = lasting > wait ? lasting : wait;
		longest = wait > longest ? wait : longest;
		*sum += th->waited + lasting;
		free(line);
	}
	return longest;
}

static bool check_steal(struct trigger *t, int64_t sum)
{
	const size_t at = t->checks++ % t->n_sums, oldest = t->checks % t->n_sums;
	t->sum[at] = sum;
	return t->checks >= t->n_sums &&
	       (double)(sum - t->sum[oldest]) > t->limit * (double)t->ns * (double)t->threads;
}

static bool trigger_fires(const char *root, struct trigger *t, int64_t now)
{
	int64_t sum;
	if (t->kind == GAP)
		return measure_waits(root, t, now, &sum) > t->ns;
	if (t->kind == STEAL) {
		measure_waits(root, t, now, &sum);
		return check_steal(t, sum);
	}
	if (t->kind == LOAD) {
		char *line = proc_line(root, "/proc/loadavg");
		const bool over = line && strtod(line, NULL) > t->limit;
		free(line);
		return over;
	}
	if (t->kind == EXIT && t->child > 0 && waitpid(t->child, NULL, WNOHANG) == t->child) {
		t->child = 0;
		return true;
	}
	return false;
}

static pid_t start_command(const char *command)
{
	fflush(NULL);
	const pid_t child = fork();
	if (child == 0) {
		setpgid(0, 0);
		signal(SIGPIPE, SIG_DFL);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	return child;
}

void triggers_arm(struct triggers *t, int64_t now)
{
	int64_t sum;
	t->next = now + TRIGGER_PERIOD;
	for (size_t i = 0; i < t->n; i++) {
		struct trigger *trigger = &t->trigger[i];
		trigger->checks = 0;
		for (size_t k = 0; k < trigger->threads; k++)
			trigger->thread[k].unchanged_since = 0;
		measure_waits(t->root, trigger, now, &sum);
		if (trigger->kind == EXIT && trigger->child <= 0)
			trigger->child = start_command(trigger->argument);
	}
}

const char *triggers_check(struct triggers *t, int64_t now)
{
	const char *fired = NULL;
	if (now < t->next)
		return NULL;
	t->next = now + TRIGGER_PERIOD;
	for (size_t i = 0; i < t->n; i++)
		if (trigger_fires(t->root, &t->trigger[i], now) && !fired)
			fired = t->trigger[i].text;
	return fired;
}
