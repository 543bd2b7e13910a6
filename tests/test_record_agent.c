/* Tests of the relay to a trace-cmd agent (record/tracecmd_agent.c) with a fake agent: the frames that the relay sends to
 * record/guest.c, its errors, and the watchdog. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "base/mem.h"
#include "record/tracecmd_head.h"
#include "record/agent_protocol.h"
#include "record/transport.h"

#define PAGE 4096
#define CLOSE_TIMEOUT_MS 60000  /* time limit until the agent closes the connection, on a loaded machine, ms */
#define HEADER_PAGE "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n" \
	"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"
#define SWITCH_FORMAT "name: sched_switch\nID: 300\nformat:\n"
#define ORDER(task, overwrite) "key=K task=" task " hold=1 limit=9 overwrite=" overwrite " max_kb=9 root='' " \
	"clocks='x86-tsc mono' events=' sched/sched_switch irq/none'\necho this is for shells\nstealscope_guest\n"
#define HELLO "K about 14\nclock x86-tsc\n"
#define AGENT_PREFIX "agent of trace-cmd at vsock 3:823: "
#define READY HELLO "K ready 31\nkilobytes 4096 rate 0 page 4096"

/* A malformed header_page: the commit field lies before the start of the page. */
#define HEADER_OUTSIDE "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n" \
	"\tfield: local_t commit;\toffset:18446744073709551612;\tsize:8;\tsigned:1;\n" \
	"\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"

enum agent_mode {
	AGENT_NORMAL,
	AGENT_CLOSES,            /* closes the connection immediately, as a busy agent does */
	AGENT_ENDS,               /* closes the connection while it traces */
	AGENT_BAD_PAGE_SIZE,
	AGENT_FEW_PORTS,          /* the list of ports is truncated */
	AGENT_HEAD_TRUNCATED,     /* the head lacks one byte */
	AGENT_NO_RESPONSE,
	AGENT_HUGE_MESSAGE,
	AGENT_MANY_CPUS,
	AGENT_NO_CPUS,
	AGENT_NEW_FORMAT,         /* version 8 of trace.dat */
	AGENT_BAD_HEADER_PAGE,
	AGENT_HEAD_STOPS,         /* closes the connection within the head */
	KILL_ON_REQUEST,          /* from here on, the agent kills the relay: see serve_killer() */
	KILL_IN_RESPONSE,
	KILL_IN_HEAD,
	KILL_WHILE_TRACING
};

/* Part of its head (the event formats) that the agent sends in each mode; 0: nothing, 1: the beginning, 2: all. */
static const int head_parts[AGENT_HEAD_STOPS + 1] = {
	[AGENT_NORMAL] = 2, [AGENT_ENDS] = 2, [AGENT_HEAD_TRUNCATED] = 2, [AGENT_NEW_FORMAT] = 2,
	[AGENT_BAD_HEADER_PAGE] = 2, [AGENT_HEAD_STOPS] = 1,
};

static struct {
	char dir[64];
	enum agent_mode mode;
	int listener, data[2];
	pid_t relay;
	unsigned accepted;   /* number of CPUs to which the relay or its watchdog has connected */
	bool closed;      /* the agent received WIRE_CLOSE */
	char request[512];
	size_t request_len;
} agent;

/* ---- the agent */

static struct sockaddr_un address_of(unsigned port)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(a.sun_path, sizeof a.sun_path, "%.64s/%u", agent.dir, port);
	return a;
}

static int listen_at(unsigned port)
{
	const struct sockaddr_un a = address_of(port);
	const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s, (const struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(s, 4), 0);
	return s;
}

static int connect_agent(const struct agent_connection *peer, unsigned port)
{
	const struct sockaddr_un a = address_of(port);
	const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(peer->cid, 3);
	return connect(s, (const struct sockaddr *)&a, sizeof a) ? -1 : s;
}

static size_t put_bytes(char *to, size_t at, const void *data, size_t len)
{
	memcpy(to + at, data, len);
	return at + len;
}

static size_t put_number(char *to, size_t at, uint64_t x, size_t bytes)
{
	const uint16_t x16 = (uint16_t)x;
	const uint32_t x32 = (uint32_t)x;
	return bytes == 2 ? put_bytes(to, at, &x16, 2) : bytes == 4 ? put_bytes(to, at, &x32, 4) : put_bytes(to, at, &x, 8);
}

static size_t put_sized(char *to, size_t at, const char *text, size_t bytes)
{
	return put_bytes(to, put_number(to, at, strlen(text), bytes), text, strlen(text));
}

/* Writes the head of a trace.dat of version 6. */
static size_t make_head(char *to)
{
	size_t at = put_bytes(to, 0, "\x17\x08\x44tracing6\0\0\x08\0\x10\0\0", 18);
	to[10] = agent.mode == AGENT_NEW_FORMAT ? '8' : '6';
	at = put_sized(to, put_bytes(to, at, "header_page", 12),
	               agent.mode == AGENT_BAD_HEADER_PAGE ? HEADER_OUTSIDE : HEADER_PAGE, 8);
	at = put_sized(to, put_bytes(to, at, "header_event", 13), "an event\n", 8);
	at = put_sized(to, put_number(to, at, 1, 4), "name: function\n", 8);
	at = put_number(to, put_bytes(to, put_number(to, at, 1, 4), "sched", 6), 1, 4);
	at = put_sized(to, at, SWITCH_FORMAT, 8);
	at = put_sized(to, at, "ffff T symbol\n", 4);
	at = put_sized(to, at, "", 4);
	at = put_sized(to, at, "12 make\n", 8);
	at = put_number(to, at, 2, 4);
	at = put_bytes(to, at, "options  ", 10);
	at = put_sized(to, put_number(to, at, 4, 2), "[x86-tsc]", 4);
	at = put_sized(to, put_number(to, at, 5, 2), "Linux web 6.1.0 x86_64", 4);
	return put_number(to, at, 0, 2);
}

static void send_response(int s)
{
	unsigned char part[40] = { 0 };
	wire_put_u32(part + 4, agent.mode == AGENT_MANY_CPUS ? UINT32_MAX : agent.mode == AGENT_NO_CPUS ? 0 : 2);
	wire_put_u32(part + 8, agent.mode == AGENT_BAD_PAGE_SIZE ? 7 : PAGE);
	wire_send(s, WIRE_RESPONSE, part, sizeof part, "1000\0001001", agent.mode == AGENT_FEW_PORTS ? 5 : 10);
}

/* Sends for CPU 0 a page after 7 lost events, and a partial page after an unknown number of lost events; for CPU 1
 * nothing. */
static void send_pages(const int *data)
{
	char page[PAGE] = "first";
	const uint64_t commit = 100 | 3ULL << 30, more = 8 | 1ULL << 31, seven = 7;
	const int s[] = { accept(data[0], NULL, NULL), accept(data[1], NULL, NULL) };
	memcpy(page + 8, &commit, 8);
	memcpy(page + 116, &seven, 8);
	assert_int_equal(write(s[0], page, 1000), 1000);
	assert_int_equal(write(s[0], page + 1000, PAGE - 1000), PAGE - 1000);
	memset(page, 0, sizeof page);
	memcpy(page, "second", 6);
	memcpy(page + 8, &more, 8);
	assert_int_equal(write(s[0], page, 100), 100);
	close(s[0]);
	close(s[1]);
}

static void serve_relay(int s, const int *data)
{
	struct wire_message m = { 0 };
	char head[4096];
	const size_t len = make_head(head);
	if (wire_receive(s, &m) == 0 && m.command == WIRE_REQUEST && m.args_len == 16 &&
	    m.payload_len < sizeof agent.request) {
		memcpy(agent.request, m.payload, m.payload_len);
		agent.request_len = m.payload_len;
		if (agent.mode == AGENT_HUGE_MESSAGE)
			assert_int_equal(write(s, "\x7f\xff\xff\xff\0\0\0\7\0\0\0\0", 12), 12);
		else if (agent.mode != AGENT_NO_RESPONSE)
			send_response(s);
	}
	if (agent.request_len && head_parts[agent.mode] > 0)
		wire_send(s, WIRE_DATA, NULL, 0, head, 50);
	if (agent.request_len && head_parts[agent.mode] > 1) {
		wire_send(s, WIRE_DATA, NULL, 0, head + 50, len - 50 - (agent.mode == AGENT_HEAD_TRUNCATED));
		wire_send(s, WIRE_END_OF_DATA, NULL, 0, NULL, 0);
	}
	if (agent.mode == AGENT_ENDS)
		send_pages(data);
	if (agent.mode == AGENT_NORMAL && wire_receive(s, &m) == 0 && m.command == WIRE_CLOSE) {
		send_pages(data);
		wire_send(s, WIRE_CLOSED, NULL, 0, NULL, 0);
	}
	free(m.bytes);
}

static void kill_relay_at(enum agent_mode kill_mode)
{
	if (agent.mode == kill_mode)
		kill(agent.relay, SIGKILL);
}

/* Kills the relay after the relay or its watchdog has read a part of the response. */
static void kill_while_responding(int s)
{
	char bytes[200];
	int pair[2], unread = 1;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	send_response(pair[0]);
	const ssize_t len = read(pair[1], bytes, sizeof bytes), head = 12;
	assert_int_equal(write(s, bytes, (size_t)head), head);
	while (ioctl(s, SIOCOUTQ, &unread) == 0 && unread > 0)
		usleep(1000);
	kill_relay_at(KILL_IN_RESPONSE);
	assert_int_equal(write(s, bytes + head, (size_t)(len - head)), len - head);
	close(pair[0]);
	close(pair[1]);
}

static bool accept_cpu(int data)
{
	const struct timeval timeout = { 100, 0 };
	int s;
	setsockopt(data, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
	while ((s = accept(data, NULL, NULL)) < 0 && errno == EINTR)
		continue;
	return s >= 0;
}

/* Acts as an agent that kills the relay at the step given by the mode. Behaves like trace-cmd: ignores the control
 * connection until all CPUs are connected; then sends its event formats, even if they are not read; then traces until
 * WIRE_CLOSE. */
static void serve_killer(int s, const int *data)
{
	struct wire_message m = { 0 };
	char head[4096];
	const size_t len = make_head(head);
	assert_int_equal(wire_receive(s, &m), 0);
	kill_relay_at(KILL_ON_REQUEST);
	if (agent.mode == KILL_IN_RESPONSE)
		kill_while_responding(s);
	else
		send_response(s);
	for (int i = 0; i < 2; i++)
		agent.accepted += accept_cpu(data[i]);
	wire_send(s, WIRE_DATA, NULL, 0, head, 50);
	kill_relay_at(KILL_IN_HEAD);
	wire_send(s, WIRE_DATA, NULL, 0, head + 50, len - 50);
	wire_send(s, WIRE_END_OF_DATA, NULL, 0, NULL, 0);
	kill_relay_at(KILL_WHILE_TRACING);
	agent.closed = wire_receive(s, &m) == 0 && m.command == WIRE_CLOSE;
	wire_send(s, WIRE_CLOSED, NULL, 0, NULL, 0);
	free(m.bytes);
}

static void *run_agent(void *arg)
{
	const int s = accept(agent.listener, NULL, NULL);
	(void)arg;
	if (s >= 0 && agent.mode >= KILL_ON_REQUEST)
		serve_killer(s, agent.data);
	else if (s >= 0 && agent.mode != AGENT_CLOSES)
		serve_relay(s, agent.data);
	close(s);
	return NULL;
}

static int agent_start(void **state)
{
	(void)state;
	agent.mode = AGENT_NORMAL;
	agent.request_len = 0;
	snprintf(agent.dir, sizeof agent.dir, "/tmp/stealscope-test-XXXXXX");
	assert_non_null(mkdtemp(agent.dir));
	agent.listener = listen_at(823);
	agent.data[0] = listen_at(1000);
	agent.data[1] = listen_at(1001);
	agent.accepted = 0;
	agent.closed = false;
	return 0;
}

static int agent_stop(void **state)
{
	(void)state;
	const unsigned port[] = { 823, 1000, 1001 };
	close(agent.listener);
	close(agent.data[0]);
	close(agent.data[1]);
	for (size_t i = 0; i < 3; i++)
		unlink(address_of(port[i]).sun_path);
	return rmdir(agent.dir);
}

/* ---- the relay */

struct relay_result { char text[3 * PAGE], errors[400]; size_t len; int status; };

static void read_all(int fd, char *to, size_t size, size_t *len)
{
	ssize_t n;
	*len = 0;
	while ((n = read(fd, to + *len, size - 1 - *len)) > 0 || (n < 0 && errno == EAGAIN)) {
		*len += n > 0 ? (size_t)n : 0;
		usleep(1000);
	}
	to[*len] = '\0';
}

static struct relay_result *run_relay(const char *input)
{
	static struct relay_result a;
	struct agent_connection peer = { 3, 823, connect_agent, 0, 1, 2,
		agent.mode == AGENT_CLOSES ? CLOSE_TIMEOUT_MS : AGENT_PROBE_MS, 0 };
	struct channel c;
	struct error err;
	size_t len;
	pthread_t thread;
	assert_int_equal(channel_start(&c, NULL, agent_relay, &peer, &err), 0);
	agent.relay = c.pid;  /* set before an agent can kill it: accept() of the agent waits until then */
	pthread_create(&thread, NULL, run_agent, NULL);
	assert_int_equal(write(c.in, input, strlen(input)), strlen(input));
	if (agent.mode != AGENT_ENDS && agent.mode < KILL_ON_REQUEST)
		channel_close_input(&c);
	read_all(c.out, a.text, sizeof a.text, &a.len);
	read_all(c.err, a.errors, sizeof a.errors, &len);
	assert_int_equal(waitpid(c.pid, &a.status, 0), c.pid);
	c.pid = 0;
	channel_end(&c);
	shutdown(agent.listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	return &a;
}

static void test_recorded(void **state)
{
	(void)state;
	static const char before[] = READY
		"K about 84\nosrelease 6.1.0\nhostname web\nmachine x86_64\nclock x86-tsc\nevents sched/sched_switch\n";
	static const char request[] = "\0\0\0\0\0\0\0\x5c\0\0\0\x0d" "-i\0-C\0x86-tsc\0-b\0" "4096\0"
		"--file-version\0" "6\0-O\0record-tgid\0-e\0sched:sched_switch\0-e\0irq:none";
	const struct relay_result *a = run_relay(ORDER("trace", "0") "more\ngo\nstop\nsend\nbye\n");
	assert_memory_equal(a->text, before, strlen(before));
	assert_memory_equal(agent.request, request, sizeof request);
	assert_int_equal(agent.request_len, sizeof request);
	const char *at = strstr(a->text, "K header_page"), *pages = memmem(a->text, a->len, "K pages/cpu0 8192\nfirst", 22);
	assert_non_null(at);
	assert_non_null(strstr(at, HEADER_PAGE "K header_event 9\nan event\nK formats 35\n" SWITCH_FORMAT
	                           "K started 0\nK stopped 0\n"));
	assert_non_null(pages);
	pages += strlen("K pages/cpu0 8192\n");
	assert_memory_equal(pages + PAGE, "second", 6);
	assert_string_equal(pages + 2 * PAGE,
	                    "K stats/cpu0 67\nentries: 0\noverrun: 8\ncommit overrun: 0\nbytes: 0\ndropped events: 0\n"
	                    "K stats/cpu1 67\nentries: 0\noverrun: 0\ncommit overrun: 0\nbytes: 0\ndropped events: 0\n"
	                    "K saved_cmdlines 8\n12 make\nK end 0\n");
	assert_string_equal(a->errors, "");
	assert_int_equal(a->status, 0);
}

static void test_check(void **state)
{
	(void)state;
	assert_string_equal(run_relay(ORDER("check", "0"))->text, HELLO "K end 0\n");
}

static void test_clean(void **state)
{
	(void)state;
	assert_string_equal(run_relay(ORDER("clean", "0"))->text, "K cleaned 19\nremoved 0\nfailed 0\nK end 0\n");
}

static void test_flight(void **state)
{
	(void)state;
	assert_string_equal(run_relay(ORDER("trace", "1"))->text, "K refuse 9\noverwrite");
}

static void test_refusals(void **state)
{
	(void)state;
	static const struct { enum agent_mode mode; const char *text, *key; } cases[] = {
		{ AGENT_CLOSES,            /* closes the connection immediately, as a busy agent does */ "", "closed the connection" },
		{ AGENT_BAD_PAGE_SIZE, READY, "answer" },
		{ AGENT_FEW_PORTS, READY, "answer" },
		{ AGENT_HEAD_TRUNCATED, READY, "event formats" },
		{ AGENT_NEW_FORMAT, READY, "event formats" },
		{ AGENT_BAD_HEADER_PAGE, READY, "page format" },
		{ AGENT_HEAD_STOPS, READY, "Connection reset by peer" },
		{ AGENT_MANY_CPUS, READY, "answer" },
		{ AGENT_NO_CPUS, READY, "answer" },
		{ AGENT_NO_RESPONSE, READY, "request" },
		{ AGENT_HUGE_MESSAGE, READY, "request" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (i)
			agent_start(state);
		agent.mode = cases[i].mode;
		const struct relay_result *a = run_relay(ORDER("trace", "0") "go\nstop\nsend\n");
		assert_string_equal(a->text, cases[i].text);
		assert_ptr_equal(strstr(a->errors, AGENT_PREFIX), a->errors);
		assert_non_null(strstr(a->errors + strlen(AGENT_PREFIX), cases[i].key));
		assert_int_equal(WEXITSTATUS(a->status), 1);
		agent_stop(state);
	}
	agent_start(state);
}

/* If the relay is killed, the watchdog completes the protocol, because otherwise the agent would not restore the
 * settings of the guest. */
static void test_killed(void **state)
{
	(void)state;
	for (enum agent_mode mode = KILL_ON_REQUEST; mode <= KILL_WHILE_TRACING; mode++) {
		if (mode > KILL_ON_REQUEST)
			agent_start(state);
		agent.mode = mode;
		const struct relay_result *a = run_relay(ORDER("trace", "0") "go\n");
		assert_int_equal(WTERMSIG(a->status), SIGKILL);
		assert_int_equal(agent.accepted, 2);
		assert_true(agent.closed);
		if (mode < KILL_WHILE_TRACING)
			agent_stop(state);
	}
}

/* If relay and watchdog were both killed, the task `reset` makes an empty recording, which disables the events. */
static void test_reset(void **state)
{
	(void)state;
	static const char request[] = "\0\0\0\0\0\0\0\x4e\0\0\0\x0b" "-i\0-C\0local\0-b\0" "4096\0"
		"--file-version\0" "6\0-O\0record-tgid\0-e\0sched:sched_switch";
	assert_string_equal(run_relay("key=K task=reset clocks='' events=''\nstealscope_guest\n")->text,
	                    "K cleaned 19\nremoved 0\nfailed 0\nK end 0\n");
	assert_memory_equal(agent.request, request, sizeof request);
}

/* The agent closes the connection during the recording. */
static void test_agent_ends(void **state)
{
	(void)state;
	agent.mode = AGENT_ENDS;
	const struct relay_result *a = run_relay(ORDER("trace", "0") "go\n");
	assert_non_null(strstr(a->text, "K started 0\n"));
	assert_non_null(strstr(a->errors, AGENT_PREFIX "the agent closed the connection"));
}

static void test_no_agent(void **state)
{
	(void)state;
	close(agent.listener);
	unlink(address_of(823).sun_path);
	agent.listener = -1;
	const struct relay_result *a = run_relay(ORDER("trace", "0"));
	assert_string_equal(a->errors, AGENT_PREFIX "No such file or directory\n");
	assert_int_equal(WEXITSTATUS(a->status), 1);
}

static void test_head(void **state)
{
	(void)state;
	char head[4096];
	struct agent_head h;
	const size_t len = make_head(head);
	for (size_t i = 0; i < len; i++) {
		char *part = mem_new(i + 1, 1);
		memcpy(part, head, i);
		assert_int_equal(agent_head_parse(&h, part, i), -1);
		agent_head_release(&h);
		free(part);
	}
	assert_int_equal(agent_head_parse(&h, head, len), 0);
	assert_string_equal(h.events, " sched/sched_switch");
	assert_string_equal(h.system, "Linux web 6.1.0 x86_64");
	agent_head_release(&h);
	char *system = memmem(head, len, "sched", 5);
	system[0] = '/';  /* a system name with a slash is refused, since it would become a path */
	assert_int_equal(agent_head_parse(&h, head, len), -1);
	agent_head_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_recorded, agent_start, agent_stop),
		cmocka_unit_test_setup_teardown(test_check, agent_start, agent_stop),
		cmocka_unit_test_setup_teardown(test_clean, agent_start, agent_stop),
		cmocka_unit_test_setup_teardown(test_flight, agent_start, agent_stop),
		cmocka_unit_test_setup_teardown(test_refusals, agent_start, agent_stop),
		cmocka_unit_test_setup_teardown(test_agent_ends, agent_start, agent_stop),
		cmocka_unit_test_setup_teardown(test_killed, agent_start, agent_stop),
		cmocka_unit_test_setup_teardown(test_reset, agent_start, agent_stop),
		cmocka_unit_test_setup_teardown(test_no_agent, agent_start, agent_stop),
		cmocka_unit_test(test_head),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
