#include "record/trigger.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/timefmt.h"
#include "record/proc.h"
#include "record/transport.h"

#define SECOND 1000000000LL
#define LONGEST (600 * SECOND)
#define STUCK (3 * SECOND / 2)
#define END_PATIENCE 5000  /* ms that a command may take to end once it was asked to */
#define MEND "'gap(web)>20ms', 'steal(web/CPU0)>30% for 1s', 'load>8', 'exit(COMMAND)' or 'signal'"

enum trigger_kind { GAP, STEAL, LOAD, EXIT, SIGNAL };

/* As schedstat has them, ns and a number of times, and since when (ns, monotonic) they are so. */
struct waiting_thread { int32_t pid, tid; long long ran, waited, began; int64_t since; };

struct trigger {
	enum trigger_kind kind;
	const char *text;
	char *argument;         /* whom, or the command */
	int64_t ns;             /* of a gap, or over which steal is taken */
	double most;            /* share, or load */
	struct waiting_thread *thread;  /* whom it watches */
	size_t threads, threads_cap;
	int64_t *sum;           /* of what they waited, at each of the last looks: a ring */
	size_t looks, looked;
	pid_t child;
};

struct triggers {
	const char *root;
	struct trigger *one;
	size_t n;
	int64_t next;           /* look, ns */
};

/* ---- words */

/* "gap(web)>": the argument, and what follows it. */
static const char *read_argument(struct trigger *t, const char *text)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	if (!open || !close || close <= open + 1)
		return NULL;
	t->argument = mem_printf("%.*s", (int)(close - open - 1), open + 1);
	return close + 1;
}

static bool read_share(struct trigger *t, const char *text)
{
	char *rest;
	t->most = strtod(text, &rest) / 100;
	t->ns = SECOND;
	if (rest == text || *rest != '%' || !(t->most > 0 && t->most < 1))
		return false;
	rest += 1 + strspn(rest + 1, " ");
	return !*rest || (strncmp(rest, "for ", 4) == 0 && time_parse_duration(rest + 4, &t->ns));
}

static bool read_words(struct trigger *t, const char *text)
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
		t->most = strtod(text + 5, &rest);
		return rest > text + 5 && !*rest && t->most > 0;
	}
	const char *more = read_argument(t, text);
	if (!more || t->kind == EXIT)
		return more && !*more;
	if (*more++ != '>')
		return false;
	const bool valid = t->kind == GAP ? time_parse_duration(more, &t->ns) : read_share(t, more);
	return valid && t->ns >= TRIGGER_LOOK / 100 && t->ns <= LONGEST;
}

/* "any", "web", "web/CPU0". */
static void find_threads(struct trigger *t, const struct vm *vm, size_t vms)
{
	const bool any = strcmp(t->argument, "any") == 0;
	for (size_t i = 0; i < vms; i++) {
		for (size_t k = 0; k < vm[i].vcpus; k++) {
			char *cpu = mem_printf("%s/CPU%u", vm[i].name, vm[i].vcpu[k].number);
			const bool meant = any || strcmp(t->argument, vm[i].name) == 0 || strcmp(t->argument, cpu) == 0;
			if (meant && vm[i].vcpu[k].tid)
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
	*all = (struct triggers){ .root = root, .one = mem_new(n, sizeof *all->one) };
	for (size_t i = 0; i < n; i++) {
		struct trigger *t = &all->one[all->n++];
		const bool valid = read_words(t, text[i]);
		if (valid && t->kind <= STEAL)
			find_threads(t, vm, vms);
		if (!valid)
			error_set(err, STATUS_USAGE, MEND, "--trigger: '%s' is none", text[i]);
		else if (t->kind <= STEAL && !t->threads)
			error_set(err, STATUS_INPUT, "stealscope record --check lists them", "--trigger: no vCPU is '%s'", t->argument);
		if (!valid || (t->kind <= STEAL && !t->threads)) {
			triggers_free(all);
			return NULL;
		}
		t->looks = t->kind == STEAL ? (size_t)(t->ns / TRIGGER_LOOK) + 1 : 0;
		t->sum = mem_new(t->looks, sizeof *t->sum);
	}
	return all;
}

static void end_child(struct trigger *t)
{
	if (t->child > 0)
		child_end(-t->child, END_PATIENCE);
	t->child = 0;
}

void triggers_free(struct triggers *t)
{
	for (size_t i = 0; t && i < t->n; i++) {
		end_child(&t->one[i]);
		free(t->one[i].argument);
		free(t->one[i].thread);
		free(t->one[i].sum);
	}
	free(t ? t->one : NULL);
	free(t);
}

/* ---- looks */

/* A wait that is not over is in no sum yet.  A CPU without ticks brings what its thread ran up to date once a second only:
 * what is not known for longer than that is none. */
static int64_t wait_so_far(const char *root, const struct waiting_thread *th, int64_t now)
{
	if (now - th->since < STUCK)
		return 0;
	char *state = proc_stat_word(root, th->pid, th->tid, 0);
	const bool wants = state && strcmp(state, "R") == 0;
	free(state);
	return wants ? now - th->since : 0;
}

/* The longest that one of the threads waited since the last look, or waits by now; *sum: all together, ever. */
static int64_t look_at_threads(const char *root, struct trigger *t, int64_t now, int64_t *sum)
{
	int64_t most = 0;
	*sum = 0;
	for (size_t i = 0; i < t->threads; i++) {
		struct waiting_thread *th = &t->thread[i];
		char *line = proc_line(root, "/proc/%d/task/%d/schedstat", (int)th->pid, (int)th->tid);
		long long ran, waited, began;
		int64_t wait = 0;
		if (line && sscanf(line, "%lld %lld %lld", &ran, &waited, &began) == 3) {
			wait = waited - th->waited;
			if (!th->since || ran != th->ran || wait || began != th->began)
				th->since = now;
			th->ran = ran;
			th->waited = waited;
			th->began = began;
		}
		const int64_t lasting = line ? wait_so_far(root, th, now) : 0;
		wait = lasting > wait ? lasting : wait;
		most = wait > most ? wait : most;
		*sum += th->waited + lasting;
		free(line);
	}
	return most;
}

static bool look_at_steal(struct trigger *t, int64_t sum)
{
	const size_t at = t->looked++ % t->looks, oldest = t->looked % t->looks;
	t->sum[at] = sum;
	return t->looked >= t->looks &&
	       (double)(sum - t->sum[oldest]) > t->most * (double)t->ns * (double)t->threads;
}

static bool fires(const char *root, struct trigger *t, int64_t now)
{
	int64_t sum;
	if (t->kind == GAP)
		return look_at_threads(root, t, now, &sum) > t->ns;
	if (t->kind == STEAL) {
		look_at_threads(root, t, now, &sum);
		return look_at_steal(t, sum);
	}
	if (t->kind == LOAD) {
		char *line = proc_line(root, "/proc/loadavg");
		const bool over = line && strtod(line, NULL) > t->most;
		free(line);
		return over;
	}
	if (t->kind == EXIT && t->child > 0 && waitpid(t->child, NULL, WNOHANG) == t->child) {
		t->child = 0;
		return true;
	}
	return false;
}

static pid_t begin_command(const char *command)
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
	t->next = now + TRIGGER_LOOK;
	for (size_t i = 0; i < t->n; i++) {
		struct trigger *one = &t->one[i];
		one->looked = 0;
		for (size_t k = 0; k < one->threads; k++)
			one->thread[k].since = 0;
		look_at_threads(t->root, one, now, &sum);
		if (one->kind == EXIT && one->child <= 0)
			one->child = begin_command(one->argument);
	}
}

const char *triggers_look(struct triggers *t, int64_t now)
{
	const char *fired = NULL;
	if (now < t->next)
		return NULL;
	t->next = now + TRIGGER_LOOK;
	for (size_t i = 0; i < t->n; i++)
		if (fires(t->root, &t->one[i], now) && !fired)
			fired = t->one[i].text;
	return fired;
}
