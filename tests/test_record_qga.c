/* record/: guest agents of QEMU, made up here, that cannot give a shell: what is said, and that nobody waits for ever. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/transport.h"

#define PATIENCE 300     /* ms for an answer where none comes, */
#define LONGER 60000     /* and where one does, on a machine that has other things to do */
#define PID "{\"return\":{\"pid\":7}}\n"
#define EXITED(with) "{\"return\":{\"exited\":true," with "}}\n"
#define LONG (2 << 20)
#define STALE "{\"return\":{\"pid\":-9}}\n\xff{\"return\": 1}\n"  /* to somebody who did not wait for it */

/* What it answers to guest-exec, and to guest-exec-status of a program of whose output it was asked (the reader of the
 * FIFO) and of another; NULL: nothing. */
struct agent_case { const char *exec, *status, *output, *why; };

static struct {
	char folder[64], socket[80];
	int listener;
	pid_t asker;
	const struct agent_case *is;
} agent;

/* ---- the agent */

static void answer(int s, const char *text)
{
	for (size_t at = 0, len = strlen(text); at < len;) {
		const ssize_t n = send(s, text + at, len - at, MSG_NOSIGNAL);
		if (n < 0)
			return;
		at += (size_t)n;
	}
}

/* "\xff{...guest-sync-delimited...:17...}": half a request may stand before it. */
static void synchronize(int s, const char *line)
{
	char text[100];
	const char *mark = strchr(line, '\xff'), *id = mark ? strstr(mark, "\"id\":") : NULL;
	assert_non_null(id);
	snprintf(text, sizeof text, "\xff{\"return\": %lld}\n", atoll(id + 5));
	answer(s, text);
}

static void *live(void *arg)
{
	static char line[1 << 20];
	const int s = accept(agent.listener, NULL, NULL);
	bool captures = false;
	size_t held = 0;
	ssize_t n;
	(void)arg;
	if (s >= 0)
		answer(s, STALE);
	while (s >= 0 && (n = read(s, line + held, sizeof line - 1 - held)) > 0) {
		held += (size_t)n;
		line[held] = '\0';
		if (!strchr(line, '\n'))
			continue;
		held = 0;
		if (strstr(line, "guest-sync-delimited")) {
			synchronize(s, line);
			continue;
		}
		kill(agent.asker, SIGUSR1);  /* a trigger, sent to all that are called stealscope: it does not mind */
		const bool status = strstr(line, "guest-exec-status");
		if (!status)
			captures = strstr(line, "\"capture-output\":true");
		const char *text = !status ? agent.is->exec : captures ? agent.is->output : agent.is->status;
		if (text && !*text)
			break;
		if (text)
			answer(s, text);
	}
	if (s >= 0)
		close(s);
	return NULL;
}

static int begin(void **state)
{
	(void)state;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(agent.folder, sizeof agent.folder, "/tmp/stealscope-test-XXXXXX");
	assert_non_null(mkdtemp(agent.folder));
	snprintf(agent.socket, sizeof agent.socket, "%.60s/qga", agent.folder);
	snprintf(a.sun_path, sizeof a.sun_path, "%s", agent.socket);
	agent.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(agent.listener, (const struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(agent.listener, 1), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	close(agent.listener);
	unlink(agent.socket);
	return rmdir(agent.folder);
}

/* ---- what comes of it */

/* The caller frees: all it says. */
static char *complaints(int *status)
{
	const bool silent = strcmp(agent.is->why, "does not answer") == 0;
	struct qga way = { agent.socket, NULL, silent ? PATIENCE : LONGER };
	struct channel c;
	struct error err;
	pthread_t thread;
	char text[1000];
	size_t len = 0;
	ssize_t n;
	assert_int_equal(channel_start(&c, NULL, qga_relay, &way, &err), 0);
	agent.asker = c.pid;  /* before there is an agent that kills it: until then its call waits */
	pthread_create(&thread, NULL, live, NULL);
	/* Reaped at last: until then the number that the agent knows is nobody else's. */
	siginfo_t ended;
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &ended, WEXITED | WNOWAIT), 0);
	shutdown(agent.listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	while ((n = read(c.err, text + len, sizeof text - 1 - len)) > 0)
		len += (size_t)n;
	assert_int_equal(waitpid(c.pid, status, 0), c.pid);
	c.pid = 0;
	channel_end(&c);
	return mem_printf("%.*s", (int)len, text);
}

static void check(const struct agent_case *is)
{
	int status;
	agent.is = is;
	begin(NULL);
	char *said = complaints(&status), *why = mem_printf("guest agent: %s\n", is->why);
	assert_string_equal(said, why);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	free(said);
	free(why);
	end(NULL);
}

static void test_refusals(void **state)
{
	(void)state;
	static const struct agent_case cases[] = {
		{ "{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"The command guest-exec has been disabled\"}}\n", NULL, NULL,
		  "The command guest-exec has been disabled" },
		{ "{\"return\":{}}\n", NULL, NULL, "its answer is not understood" },
		{ "{\"return\":{\"pid\":-3}}\n", NULL, NULL, "its answer is not understood" },
		{ "[1,2]\n", NULL, NULL, "its answer is not understood" },
		{ "{\"return\":\n", NULL, NULL, "its answer is not understood" },
		{ "\n", NULL, NULL, "its answer is not understood" },
		{ NULL, NULL, NULL, "does not answer" },
		{ "", NULL, NULL, "has closed its socket" },
		{ PID, NULL, NULL, "does not answer" },
		{ PID, "", NULL, "has closed its socket" },
		{ PID, EXITED("\"exitcode\":1"), NULL, "no FIFO can be made in /run there" },
		{ PID, EXITED("\"signal\":9"), NULL, "no FIFO can be made in /run there" },
		{ PID, EXITED("\"exitcode\":0"), NULL, "does not answer" },
		{ PID, EXITED("\"exitcode\":0"), EXITED("\"exitcode\":0,\"out-data\":\"QUJ\""),
		  "what its program has put out is not understood" },
		{ PID, EXITED("\"exitcode\":0"), EXITED("\"exitcode\":0,\"out-data\":17"),
		  "what its program has put out is not understood" },
		{ PID, EXITED("\"exitcode\":0"), EXITED("\"exitcode\":0"), "nothing comes out of its shell any more" },
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		check(&cases[i]);
}

static void test_endless(void **state)
{
	(void)state;
	char *text = mem_new(LONG + 1, 1);
	memset(text, ' ', LONG);
	text[LONG] = '\0';
	check(&(struct agent_case){ text, NULL, NULL, "its answer is too long" });
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_refusals), cmocka_unit_test(test_endless) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
