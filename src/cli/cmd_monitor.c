/* stealscope monitor: collects like top, without a screen: serves metrics, logs events, keeps recordings on triggers. */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/metrics_server.h"
#include "cli/monitor_rows.h"
#include "cli/opts.h"
#include "cli/password_file.h"
#include "live/live.h"

#define DEFAULT_LISTEN "127.0.0.1:9796"
#define FLUSH_NS (NS_PER_S / 4)
#define MAX_TRIGGERS 32
#define MAX_SHARES 64
#define RESTART_NS NS_PER_S  /* before the flight recording is started again; doubles each time */
#define RESTART_MAX_NS (300 * NS_PER_S)
#define WRITE_NS (60 * NS_PER_S)  /* between two transactions of the database */

static volatile sig_atomic_t stop, reopen;

static void on_signal(int sig)
{
	if (sig == SIGHUP)
		reopen = 1;
	else if (sig != SIGCHLD)
		stop = 1;
}

struct monitor_command {
	struct live_request request;
	struct opt_list pid, comm, trigger, share;
	const char *listen, *delay, *output, *notice, *to, *password, *publish, *own;
	char *target;              /* database; NULL: none */
	char host[256];            /* this machine's name, in the rows */
	struct monitor_rows rows;
	int64_t write_at;          /* CLOCK_MONOTONIC of the next transaction, ns */
	bool unreachable;          /* the last transaction failed */
	int64_t period;
	double notice_share;       /* stolen or throttled share above which a vCPU is logged */
	struct share *shared[MAX_SHARES];
	pid_t flight;              /* the flight recorder; 0: none */
	int64_t flight_begin, flight_pause;  /* time of its start; time until the next start after its end, ns */
	sigset_t during;           /* signal mask while waiting */
	char noticed[64][LIVE_NAME + 16];  /* vCPUs that are above the limit */
	size_t noticeds;
};

/* ---- the flight recorder */

/* Starts `stealscope record --flight` with the triggers, which ends with this process. */
static void start_flight(struct monitor_command *m)
{
	const char *argv[14 + 2 * MAX_TRIGGERS] = { "stealscope", "record", "--flight", "--keep", "1000", "--no-index", "-o",
		                                        m->output };
	size_t n = 8;
	for (size_t i = 0; i < m->trigger.len && i < MAX_TRIGGERS; i++) {
		argv[n++] = "--trigger";
		argv[n++] = m->trigger.item[i];
	}
	if (!m->trigger.len)
		return;
	if (*m->request.root) {
		argv[n++] = "--root";
		argv[n++] = m->request.root;
	}
	m->flight_begin = now_ns();
	m->flight = fork();
	if (m->flight == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		sigprocmask(SIG_SETMASK, &m->during, NULL);
		execv("/proc/self/exe", (char *const *)argv);
		_exit(STATUS_SYSTEM);
	}
	fprintf(stderr, "stealscope: flight recorder started, PID %d\n", (int)m->flight);
}

/* Logs the flight recorder's end, and starts it again later: at once in vain would fill the log. */
static void watch_flight(struct monitor_command *m)
{
	int status;
	if (m->flight > 0 && waitpid(m->flight, &status, WNOHANG) == m->flight) {
		const int64_t ran = now_ns() - m->flight_begin;
		m->flight = 0;
		m->flight_pause = ran > RESTART_MAX_NS || !m->flight_pause ? RESTART_NS
		                                                           : min64(2 * m->flight_pause, RESTART_MAX_NS);
		m->flight_begin += ran + m->flight_pause;
		fprintf(stderr, "stealscope: flight recorder ended with %s %d; it starts again in %d s\n",
		        WIFEXITED(status) ? "status" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
		        (int)(m->flight_pause / NS_PER_S));
	} else if (m->flight <= 0 && m->trigger.len && now_ns() >= m->flight_begin) {
		start_flight(m);
	}
}

static void stop_flight(struct monitor_command *m)
{
	if (m->flight <= 0)
		return;
	kill(m->flight, SIGTERM);
	while (waitpid(m->flight, NULL, 0) < 0 && errno == EINTR)
		continue;
	m->flight = 0;
}

/* ---- log */

/* Returns the position of a name among the vCPUs above the limit; the number of them: it is not there. */
static size_t find_noticed(const struct monitor_command *m, const char *name)
{
	size_t i = 0;
	while (i < m->noticeds && strcmp(m->noticed[i], name) != 0)
		i++;
	return i;
}

/* Logs each vCPU once when it passes the limit, and once when it is below it again. */
static void log_sample(struct monitor_command *m, const struct live_sample *s)
{
	for (size_t i = 0; i < s->vcpus; i++) {
		const struct live_vcpu *v = &s->vcpu[i];
		if (v->number < 0 && s->by_process)
			continue;  /* short-lived ones would fill the log */
		const double stolen = (double)v->ns.stolen / (double)s->period;
		const double throttled = (double)v->ns.throttled / (double)s->period;
		char name[LIVE_NAME + 16];
		if (v->number >= 0)
			snprintf(name, sizeof name, "%s/vCPU%d", v->machine, v->number);
		else
			snprintf(name, sizeof name, "%s/%d", v->machine, v->tid);
		const size_t at = find_noticed(m, name);
		const bool is_above = stolen + throttled > m->notice_share;
		if (is_above && at == m->noticeds && at < sizeof m->noticed / sizeof *m->noticed) {
			memcpy(m->noticed[m->noticeds++], name, sizeof name);
			fprintf(stderr, "stealscope: %s lost %.1f %% of %.3g s (stolen %.1f, throttled %.1f), most to %s\n", name,
			        100 * (stolen + throttled), (double)s->period / 1e9, 100 * stolen, 100 * throttled,
			        throttled > stolen ? "its quota" : v->top >= 0 ? s->culprit[v->top].name : "unknown");
		} else if (!is_above && at < m->noticeds) {
			memcpy(m->noticed[at], m->noticed[--m->noticeds], sizeof m->noticed[at]);
			fprintf(stderr, "stealscope: %s lost only %.1f %% again\n", name, 100 * (stolen + throttled));
		}
	}
}

/* ---- database */

/* Writes the waiting rows. A failure is logged once; the rows wait for the next transaction. */
static void write_rows(struct monitor_command *m)
{
	struct error err = ERROR_INIT;
	const bool failed = monitor_rows_write(&m->rows, m->target, m->host, &err) != 0;
	if (failed && !m->unreachable)
		fprintf(stderr, "stealscope: database: %s\n", err.text);
	else if (!failed && m->unreachable)
		fprintf(stderr, "stealscope: database: rows are written again, %" PRIu64 " were too old\n", m->rows.dropped);
	m->unreachable = failed;
	m->write_at = now_ns() + WRITE_NS;
}

/* Keeps the rows of a sample, and writes rows once a minute and at a signal. */
static void keep_rows(struct monitor_command *m, const struct live_sample *s)
{
	if (!m->target)
		return;
	monitor_rows_add(&m->rows, s);
	if (now_ns() >= m->write_at)
		write_rows(m);
}

/* ---- loop */

static void catch_signals(struct monitor_command *m)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
	struct sigaction sa = { .sa_handler = on_signal };
	sigset_t blocked;
	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
		sigaction(caught[i], &sa, NULL);
		sigaddset(&blocked, caught[i]);
	}
	sigprocmask(SIG_BLOCK, &blocked, &m->during);
	for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
		sigdelset(&m->during, caught[i]);
}

static void run_loop(struct monitor_command *m, struct live *l, struct metrics_server *server, struct publisher *publisher)
{
	struct live_metrics *metrics = live_metrics_new();
	const int64_t pause = m->share.len ? LIVE_SHARE_NS : FLUSH_NS;
	int64_t next = now_ns() + min64(m->period, NS_PER_S);  /* the first period is short */
	int64_t flush_at = now_ns() + pause;
	m->write_at = now_ns() + WRITE_NS;
	start_flight(m);
	while (!stop) {
		const int64_t rests = publisher_rests(publisher), until = min64(next, flush_at);
		const bool asleep = rests > now_ns();
		metrics_server_run(server, metrics, asleep ? min64(rests, until) : until, &m->during,
		                   asleep ? -1 : publisher_events(publisher));
		publisher_run(publisher);
		watch_flight(m);
		if (reopen) {
			reopen = 0;
			stop_flight(m);
			start_flight(m);
			if (m->target)
				write_rows(m);
		}
		if (now_ns() < next && now_ns() < flush_at)
			continue;  /* a client or process woke the loop: flushing at each of these would cost its rate */
		flush_at = now_ns() + pause;
		if (now_ns() < next) {
			live_flush(l);
			for (size_t i = 0; i < m->share.len; i++)
				share_update(m->shared[i], l);
			continue;
		}
		struct live_sample s;
		live_take(l, &s);
		live_metrics_add(metrics, &s);
		if (m->trigger.len)
			live_metrics_set_flight(metrics, m->flight > 0);
		log_sample(m, &s);
		for (size_t i = 0; i < m->share.len; i++)
			share_culprits(m->shared[i], &s);
		keep_rows(m, &s);
		live_sample_release(&s);
		next = max64(next + m->period, now_ns());
	}
	stop_flight(m);
	if (m->target)
		write_rows(m);
	live_metrics_free(metrics);
}

static int parse_options(struct monitor_command *m, int argc, char **argv, struct error *err)
{
	const struct opt opt[] = {
		{ "listen", 'l', OPT_TEXT, "ADDR:PORT", "serve /metrics here (default: " DEFAULT_LISTEN ")", &m->listen, NULL },
		{ "delay", 'd', OPT_TEXT, "SECONDS", "length of a period (default: 5)", &m->delay, NULL },
		{ "notice", 0, OPT_TEXT, "PERCENT", "log vCPUs that lose more than this (default: 10)", &m->notice, NULL },
		{ "trigger", 0, OPT_LIST, "WHEN", "keep a recording: gap(VM)>20ms, ... (see record)", &m->trigger, NULL },
		{ "output", 'o', OPT_TEXT, "DIR", "directory of these recordings", &m->output, NULL },
		{ "to", 0, OPT_TEXT, "TARGET", "write rows to a database: sqlite:FILE, ...", &m->to, NULL },
		{ "password-file", 0, OPT_TEXT, "FILE", "file with the database password in its first line", &m->password, NULL },
		{ "publish", 0, OPT_TEXT, "SOCKET", "publish counters to processes that use srbn_read()", &m->publish, NULL },
		{ "own", 0, OPT_TEXT, "WHAT", "with --publish: process or machine is no provider", &m->own, NULL },
		{ "share", 0, OPT_LIST, "VM=FILE", "share counters with a VM through this memory", &m->share, NULL },
		{ "pid", 'p', OPT_LIST, "PID", "watch this process or thread as well", &m->pid, NULL },
		{ "comm", 0, OPT_LIST, "NAME", "watch all threads with this name as well", &m->comm, NULL },
		{ "no-bpf", 0, OPT_FLAG, NULL, "use schedstat: culprits are lower bounds", &m->request.without_bpf, NULL },
		{ "root", 0, OPT_TEXT, "DIR", "directory with proc, sys and run", &m->request.root, NULL },
	};
	const struct opts opts = { "monitor", "Collect live without a screen, and serve the result as OpenMetrics.", opt,
	                           sizeof opt / sizeof *opt, 0, 0 };
	int first;
	char *end = NULL;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	const double seconds = m->delay ? strtod(m->delay, &end) : 5;
	if (m->delay && (end == m->delay || *end || !(seconds >= 0.5 && seconds <= 3600)))
		return error_set(err, STATUS_USAGE, "for example -d 5", "--delay: not between 0.5 and 3600 seconds: '%s'",
		                 m->delay);
	m->period = (int64_t)(seconds * 1e9);
	m->notice_share = m->notice ? strtod(m->notice, &end) / 100 : 0.10;
	if (m->notice && (end == m->notice || (*end && strcmp(end, "%") != 0) ||
	                  !(m->notice_share >= 0 && m->notice_share <= 1)))
		return error_set(err, STATUS_USAGE, "for example --notice 10", "--notice: not a percentage: '%s'", m->notice);
	if (m->trigger.len && !m->output)
		return error_set(err, STATUS_USAGE, "add -o DIR", "--trigger requires --output");
	if (m->trigger.len > MAX_TRIGGERS)
		return error_set(err, STATUS_USAGE, NULL, "--trigger: more than %d", MAX_TRIGGERS);
	if (gethostname(m->host, sizeof m->host - 1))
		return error_system(err, NULL, "cannot find the name of this machine");
	if (m->own && strcmp(m->own, "process") != 0 && strcmp(m->own, "machine") != 0)
		return error_set(err, STATUS_USAGE, NULL, "--own: neither process nor machine: '%s'", m->own);
	m->request.publishes = m->publish != NULL;
	m->request.shares = m->share.len > 0;
	m->request.steal_clock = m->publish && (!m->own || *m->own == 'm') && live_has_steal_clock();
	if (m->own && *m->own == 'm' && !m->request.steal_clock)
		return error_set(err, STATUS_INPUT, "use --own process",
		                 "--own machine: this machine has no steal clock that BPF can read");
	m->target = m->to ? password_hide(m->to) : NULL;
	if ((m->target && export_live_check(m->target, err)) || (m->password && password_read_file(m->password, err)))
		return -1;
	if (m->share.len > MAX_SHARES)
		return error_set(err, STATUS_USAGE, NULL, "--share: more than %d", MAX_SHARES);
	m->request.pid = m->pid.item;
	m->request.pids = m->pid.len;
	m->request.comm = m->comm.item;
	m->request.comms = m->comm.len;
	return 0;
}

/* Opens the memory of --share. Only BPF has the counters of vCPUs at all times. */
static int open_shares(struct monitor_command *m, const struct live *l, struct error *err)
{
	if (m->share.len && live_limits(l))
		return error_set(err, STATUS_SYSTEM, NULL, "--share needs BPF: %s", live_limits(l)->text);
	for (size_t i = 0; i < m->share.len; i++)
		if (!(m->shared[i] = share_open(m->share.item[i], err)))
			return -1;
	return 0;
}

int cmd_monitor(int argc, char **argv, struct error *err)
{
	struct monitor_command m = { .request = { .root = "" }, .listen = DEFAULT_LISTEN };
	int rc = parse_options(&m, argc, argv, err);
	struct metrics_server *server = rc == 0 ? metrics_server_open(m.listen, err) : NULL;
	struct live *l = server ? live_open(&m.request, err) : NULL;
	struct publisher *publisher = l && m.publish ? publisher_open(l, m.publish, err) : NULL;
	if (l && (publisher || !m.publish) && open_shares(&m, l, err) == 0) {
		catch_signals(&m);
		fprintf(stderr, "stealscope: monitor serves http://%s/metrics%s%s\n", m.listen,
		        live_limits(l) ? "; culprits are lower bounds: " : "", live_limits(l) ? live_limits(l)->text : "");
		run_loop(&m, l, server, publisher);
	} else {
		rc = -1;
	}
	for (size_t i = 0; i < m.share.len && i < MAX_SHARES; i++)
		share_close(m.shared[i]);
	publisher_close(publisher);
	live_close(l);
	metrics_server_close(server);
	monitor_rows_release(&m.rows);
	free(m.target);
	free(m.pid.item);
	free(m.comm.item);
	free(m.trigger.item);
	free(m.share.item);
	return rc;
}
