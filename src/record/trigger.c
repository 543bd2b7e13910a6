#include "record/trigger.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "record/control_group.h"
#include "record/proc.h"
#include "record/transport.h"
#include "record/trigger_target.h"

#define DURATION_MAX (600 * NS_PER_S)  /* for a gap or a steal average */
#define LASTING_WAIT (3 * NS_PER_S / 2)  /* ns without a change in schedstat after which a runnable thread waits */
#define FIND_NS (2 * NS_PER_S)  /* between two searches for the threads of names and groups */
#define FALSE_NS NS_PER_S  /* a trigger that was false for this time may fire again */
#define TERM_TIMEOUT 5000  /* ms for a command to end after SIGTERM */
#define REMEDY "use 'gap(web)>20ms', 'gap(thread:redis-server)>5ms', 'steal(web/CPU0)>30% for 1s', " \
	"'throttled(web.service)>10%', 'log(FILE,TEXT)', 'load>8', 'exit(COMMAND)' or 'signal'"

enum trigger_kind { GAP, STEAL, THROTTLED, LOG, LOAD, EXIT, SIGNAL };  /* up to THROTTLED: with a target */

/* A watched vCPU thread and its schedstat at the last check. */
struct waiting_thread {
	int32_t pid, tid;
	long long ran, waited;  /* ns since the thread's start */
	long long runs;         /* how often the thread was scheduled */
	int64_t unchanged_since;  /* monotonic time when these values last changed, ns; 0: not read yet */
};

struct trigger {
	enum trigger_kind kind;
	const char *text;
	char *argument;         /* a target's name, or a command; for a log: the file */
	int64_t ns;             /* a gap's threshold, or a steal average's period, ns */
	double limit;           /* threshold for a steal share (0..1) or the load */
	struct waiting_thread *thread;  /* watched vCPU threads */
	size_t threads, threads_cap;
	int64_t *sum;           /* the threads' total waiting time at the last n_sums checks, ns: ring buffer */
	size_t n_sums, checks;  /* checks: check count so far */
	pid_t child;            /* the running command; 0: none */
	bool is_vm;             /* the target is a VM or vCPU: its threads stay */
	char *group;            /* THROTTLED: the control group's path */
	int64_t total;          /* the threads' waiting time since they are watched, ns */
	struct trigger_log log;
	int64_t false_since, held_until;  /* since when it is false, 0: it is true; a trigger that has fired waits */
};

struct triggers {
	const char *root;
	struct trigger *trigger;
	size_t n;
	int64_t next;  /* the next check, monotonic ns */
	int64_t found;  /* time when the target threads were searched last, ns */
	int64_t hold;
	struct cgroup_tree tree;
};

/* ---- syntax */

/* Parses the argument in "gap(web)>20ms". Returns the text after the parenthesis; NULL: syntax error. */
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
		{ "gap(", GAP }, { "steal(", STEAL }, { "throttled(", THROTTLED }, { "log(", LOG },
		{ "load>", LOAD }, { "exit(", EXIT }, { "signal", SIGNAL },
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
	if (t->kind == LOG) {
		char *comma = strchr(t->argument, ',');
		if (!comma || comma == t->argument || !comma[1] || *more)
			return false;
		*comma = '\0';
		t->log = (struct trigger_log){ .file = t->argument, .text = comma + 1, .fd = -1 };
		return true;
	}
	if (*more++ != '>')
		return false;
	const bool valid = t->kind == GAP ? time_parse_duration(more, &t->ns) : parse_share(t, more);
	return valid && t->ns >= TRIGGER_PERIOD / 100 && t->ns <= DURATION_MAX;
}

/* Finds the vCPU threads that the argument selects: "any", "web", "web/CPU0". */
static void find_vcpus(struct trigger *t, const struct vm *vm, size_t vms)
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
	t->is_vm = t->threads > 0;
}

struct target_search { struct trigger *t; struct waiting_thread *old; size_t n; };

/* Appends a thread; one that was watched before keeps its counters. */
static void add_thread(void *arg, int32_t pid, int32_t tid)
{
	const struct target_search *s = arg;
	struct waiting_thread th = { .pid = pid, .tid = tid };
	for (size_t i = 0; i < s->n; i++)
		if (s->old[i].pid == pid && s->old[i].tid == tid)
			th = s->old[i];
	*ARRAY_PUSH(s->t->thread, s->t->threads, s->t->threads_cap) = th;
}

/* Finds a name's or group's threads again: they come and go. */
static void find_threads(const char *root, struct trigger *t)
{
	struct target_search s = { t, t->thread, t->threads };
	if (t->is_vm || (t->kind != GAP && t->kind != STEAL))
		return;
	t->thread = NULL;
	t->threads = t->threads_cap = 0;
	trigger_target_threads(root, t->argument, add_thread, &s);
	free(s.old);
}

/* Returns true if a trigger's target exists. */
static bool find_target(const char *root, struct trigger *t, const struct vm *vm, size_t vms)
{
	if (t->kind == THROTTLED)
		return (t->group = trigger_target_group(root, t->argument)) != NULL;
	if (t->kind > THROTTLED)
		return true;
	find_vcpus(t, vm, vms);
	find_threads(root, t);
	return t->threads > 0;
}

struct triggers *triggers_new(const char *root, const char *const *text, size_t n, const struct vm *vm, size_t vms,
                              struct error *err)
{
	struct triggers *all = mem_new(1, sizeof *all);
	*all = (struct triggers){ .root = root, .trigger = mem_new(n, sizeof *all->trigger) };
	cgroup_tree_find(&all->tree, root);
	for (size_t i = 0; i < n; i++) {
		struct trigger *t = &all->trigger[all->n++];
		const bool valid = parse_trigger(t, text[i]), found = valid && find_target(root, t, vm, vms);
		if (!valid)
			error_set(err, STATUS_USAGE, REMEDY, "--trigger: syntax error in '%s'", text[i]);
		else if (!found)
			error_set(err, STATUS_INPUT, "stealscope record --check lists the VMs, top -b lists groups",
			          "--trigger: no running VM, vCPU, thread or group has the name '%s'", t->argument);
		if (!found) {
			triggers_free(all);
			return NULL;
		}
		t->n_sums = t->kind == STEAL || t->kind == THROTTLED ? (size_t)(t->ns / TRIGGER_PERIOD) + 1 : 0;
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
		free(t->trigger[i].group);
		if (t->trigger[i].kind == LOG)
			trigger_log_close(&t->trigger[i].log);
	}
	free(t ? t->trigger : NULL);
	free(t);
}

/* ---- checks */

/* Returns how long a wait in progress has lasted, which the kernel's sums do not include; 0: none. On a tickless CPU the
 * kernel updates a running thread's sums only once a second, so that only longer unchanged values show a wait. */
static int64_t current_wait(const char *root, const struct waiting_thread *th, int64_t now)
{
	if (now - th->unchanged_since < LASTING_WAIT)
		return 0;
	char *state = proc_stat_word(root, th->pid, th->tid, 0);
	const bool runnable = state && strcmp(state, "R") == 0;
	free(state);
	return runnable ? now - th->unchanged_since : 0;
}

/* Returns a thread's longest wait since the last check, including waits in progress, ns. *sum: all threads' total
 * waiting time. */
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
			wait = th->unchanged_since ? waited - th->waited : 0;  /* a thread that is new has no earlier value */
			if (!th->unchanged_since || ran != th->ran || wait || runs != th->runs)
				th->unchanged_since = now;
			th->ran = ran;
			th->waited = waited;
			th->runs = runs;
		}
		const int64_t lasting = line ? current_wait(root, th, now) : 0;
		t->total += wait;
		*sum += lasting;
		wait = lasting > wait ? lasting : wait;
		longest = wait > longest ? wait : longest;
		free(line);
	}
	*sum += t->total;
	return longest;
}

static bool check_steal(struct trigger *t, int64_t sum)
{
	const size_t at = t->checks++ % t->n_sums, oldest = t->checks % t->n_sums;
	t->sum[at] = sum;
	return t->checks >= t->n_sums &&
	       (double)(sum - t->sum[oldest]) > t->limit * (double)t->ns * (double)(t->is_vm ? t->threads : 1);
}

/* Keeps the last second's throttled times in t->sum, one per check. */
static bool check_throttled(const struct triggers *all, struct trigger *t)
{
	struct cgroup_stat stat;
	if (!cgroup_stat_read(&all->tree, all->root, t->group, &stat))
		return false;
	const size_t at = t->checks++ % t->n_sums, oldest = t->checks % t->n_sums;
	t->sum[at] = stat.throttled_ns;
	return t->checks >= t->n_sums && (double)(stat.throttled_ns - t->sum[oldest]) > t->limit * (double)t->ns;
}

static bool trigger_is_true(const struct triggers *all, struct trigger *t, int64_t now)
{
	const char *root = all->root;
	int64_t sum;
	if (t->kind == THROTTLED)
		return check_throttled(all, t);
	if (t->kind == LOG)
		return trigger_log_check(&t->log);
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

void triggers_arm(struct triggers *t, int64_t now, int64_t hold)
{
	int64_t sum;
	if (!t)
		return;
	t->next = now + TRIGGER_PERIOD;
	t->hold = hold;
	for (size_t i = 0; i < t->n; i++) {
		struct trigger *trigger = &t->trigger[i];
		trigger->checks = 0;
		for (size_t k = 0; k < trigger->threads; k++)
			trigger->thread[k].unchanged_since = 0;
		measure_waits(t->root, trigger, now, &sum);
		if (trigger->kind == LOG && trigger->log.fd < 0)
			trigger_log_open(&trigger->log);
		if (trigger->kind == EXIT && trigger->child <= 0)
			trigger->child = start_command(trigger->argument);
	}
}

/* Returns true if a trigger is true and was not before, or has stayed true for t->hold. */
static bool trigger_fires(struct triggers *t, struct trigger *trigger, int64_t now)
{
	if (!trigger_is_true(t, trigger, now)) {
		if (!trigger->false_since)
			trigger->false_since = now;
		if (now - trigger->false_since >= FALSE_NS)
			trigger->held_until = 0;
		return false;
	}
	trigger->false_since = 0;
	if (now < trigger->held_until)
		return false;
	trigger->held_until = now + t->hold;
	return true;
}

const char *triggers_check(struct triggers *t, int64_t now)
{
	const char *fired = NULL;
	if (now < t->next)
		return NULL;
	t->next = now + TRIGGER_PERIOD;
	if (now - t->found >= FIND_NS) {
		for (size_t i = 0; i < t->n; i++)
			find_threads(t->root, &t->trigger[i]);
		t->found = now;
	}
	for (size_t i = 0; i < t->n; i++)
		if (trigger_fires(t, &t->trigger[i], now) && !fired)
			fired = t->trigger[i].text;
	return fired;
}
