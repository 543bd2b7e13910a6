/* Tests of record/qga.c with a fake QEMU guest agent that cannot start a shell: error messages and timeouts. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/transport.h"

#define SHORT_WAIT_MS 300     /* timeout if the agent never answers, ms */
#define LONG_WAIT_MS 60000     /* timeout if the agent answers, on a loaded machine, ms */
#define PID "{\"return\":{\"pid\":7}}\n"
#define EXITED(with) "{\"return\":{\"exited\":true," with "}}\n"
#define LONG (2 << 20)
#define STALE "{\"return\":{\"pid\":-9}}\n\xff{\"return\": 1}\n"  /* unread answers to an earlier client */

/* Behavior of the agent: answers to guest-exec, to guest-exec-status, and to guest-exec-status of a program with
 * captured output (the reader of the FIFO); NULL: no answer; "": closes the connection. key: expected part of the error
 * message. */
struct agent_case { const char *exec, *status, *output, *key; };

#define SILENT "no answer"

static struct {
	char dir[64], socket[80];
	int listener;
	pid_t relay;
	const struct agent_case *behavior;
} agent;

/* ---- the agent */

static void send_answer(int s, const char *text)
{
	for (size_t at = 0, len = strlen(text); at < len;) {
		const ssize_t n = send(s, text + at, len - at, MSG_NOSIGNAL);
		if (n < 0)
			return;
		at += (size_t)n;
	}
}

/* Answers guest-sync-delimited with the same id; an incomplete request may precede it. */
static void answer_sync(int s, const char *line)
{
	char text[100];
	const char *mark = strchr(line, '\xff'), *id = mark ? strstr(mark, "\"id\":") : NULL;
	assert_non_null(id);
	snprintf(text, sizeof text, "\xff{\"return\": %lld}\n", atoll(id + 5));
	send_answer(s, text);
}

static void *run_agent(void *arg)
{
	static char line[1 << 20];
	const int s = accept(agent.listener, NULL, NULL);
	bool captures = false;
	size_t used = 0;
	ssize_t n;
	(void)arg;
	if (s >= 0)
		send_answer(s, STALE);
	while (s >= 0 && (n = read(s, line + used, sizeof line - 1 - used)) > 0) {
		used += (size_t)n;
		line[used] = '\0';
		if (!strchr(line, '\n'))
			continue;
		used = 0;
		if (strstr(line, "guest-sync-delimited")) {
			answer_sync(s, line);
			continue;
		}
		kill(agent.relay, SIGUSR1);  /* the signal of a trigger, sent to all stealscope processes */
		const bool status = strstr(line, "guest-exec-status");
		if (!status)
			captures = strstr(line, "\"capture-output\":true");
		const char *text = !status ? agent.behavior->exec : captures ? agent.behavior->output : agent.behavior->status;
		if (text && !*text)
			break;
		if (text)
			send_answer(s, text);
	}
	if (s >= 0)
		close(s);
	return NULL;
}

static int agent_start(void **state)
{
	(void)state;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(agent.dir, sizeof agent.dir, "/tmp/stealscope-test-XXXXXX");
	assert_non_null(mkdtemp(agent.dir));
	snprintf(agent.socket, sizeof agent.socket, "%.60s/qga", agent.dir);
	snprintf(a.sun_path, sizeof a.sun_path, "%s", agent.socket);
	agent.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(agent.listener, (const struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(agent.listener, 1), 0);
	return 0;
}

static int agent_stop(void **state)
{
	(void)state;
	close(agent.listener);
	unlink(agent.socket);
	return rmdir(agent.dir);
}

/* ---- the relay */

/* Returns everything that the relay writes to stderr (the caller frees); *status: its exit status. */
static char *relay_errors(int *status)
{
	const bool silent = strcmp(agent.behavior->key, SILENT) == 0;
	struct qga peer = { agent.socket, NULL, silent ? SHORT_WAIT_MS : LONG_WAIT_MS };
	struct channel c;
	struct error err;
	pthread_t thread;
	char text[1000];
	size_t len = 0;
	ssize_t n;
	assert_int_equal(channel_start(&c, NULL, qga_relay, &peer, &err), 0);
	agent.relay = c.pid;  /* set before an agent can signal it: accept() of the agent waits until then */
	pthread_create(&thread, NULL, run_agent, NULL);
	/* Not reaped before the agent has ended: until then its PID cannot be reused. */
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

static void check_refusal(const struct agent_case *behavior)
{
	int status;
	agent.behavior = behavior;
	agent_start(NULL);
	char *errors = relay_errors(&status);
	assert_ptr_equal(strstr(errors, "guest agent: "), errors);
	if (!strstr(errors, behavior->key))
		fail_msg("\"%s\" does not contain \"%s\"", errors, behavior->key);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	free(errors);
	agent_stop(NULL);
}

static void test_refusals(void **state)
{
	(void)state;
	static const struct agent_case cases[] = {
		{ "{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"The command guest-exec has been disabled\"}}\n", NULL, NULL,
		  "guest-exec has been disabled" },
		{ "{\"return\":{}}\n", NULL, NULL, "answer" },
		{ "{\"return\":{\"pid\":-3}}\n", NULL, NULL, "answer" },
		{ "[1,2]\n", NULL, NULL, "answer" },
		{ "{\"return\":\n", NULL, NULL, "answer" },
		{ "\n", NULL, NULL, "answer" },
		{ NULL, NULL, NULL, SILENT },
		{ "", NULL, NULL, "closed" },
		{ PID, NULL, NULL, SILENT },
		{ PID, "", NULL, "closed" },
		{ PID, EXITED("\"exitcode\":1"), NULL, "FIFO" },
		{ PID, EXITED("\"signal\":9"), NULL, "FIFO" },
		{ PID, EXITED("\"exitcode\":0"), NULL, SILENT },
		{ PID, EXITED("\"exitcode\":0"), EXITED("\"exitcode\":0,\"out-data\":\"QUJ\""),
		  "output" },
		{ PID, EXITED("\"exitcode\":0"), EXITED("\"exitcode\":0,\"out-data\":17"),
		  "output" },
		{ PID, EXITED("\"exitcode\":0"), EXITED("\"exitcode\":0"), "shell" },
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		check_refusal(&cases[i]);
}

static void test_endless(void **state)
{
	(void)state;
	char *text = mem_new(LONG + 1, 1);
	memset(text, ' ', LONG);
	text[LONG] = '\0';
	check_refusal(&(struct agent_case){ text, NULL, NULL, "too long" });
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_refusals), cmocka_unit_test(test_endless) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
