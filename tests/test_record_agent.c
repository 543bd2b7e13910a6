/* record/: an agent of trace-cmd in a guest, made up here, and what it is translated to for record/guest.c. */
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
#define LONGER 60000  /* ms until a machine that has other things to do has hung up */
#define HEADER_PAGE "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n" \
	"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"
#define SWITCH "name: sched_switch\nID: 300\nformat:\n"
#define ORDER(task, turn) "key=K task=" task " hold=1 limit=9 turn=" turn " ceiling=9 root='' clocks='x86-tsc mono' " \
	"events=' sched/sched_switch irq/none'\necho this is for shells\nstealscope_guest\n"
#define HELLO "K about 14\nclock x86-tsc\n"
#define READY HELLO "K ready 31\nkilobytes 4096 rate 0 page 4096"

/* One whose field for a page's size is before the page. */
#define HEADER_OUTSIDE "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n" \
	"\tfield: local_t commit;\toffset:18446744073709551612;\tsize:8;\tsigned:1;\n" \
	"\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"

enum mood { WILLING, BUSY, DYING, MUMBLING, SHORT_OF_PORTS, CUT, OLD, LOUD, CROWDED, EMPTY, NEW, OUTSIDE, FAINTING,
	KILLER_ASKED, KILLER_ANSWERING, KILLER_DESCRIBING, KILLER_TRACING };

/* 1: a part of it */
static const int says_head[FAINTING + 1] = {
	[WILLING] = 2, [DYING] = 2, [CUT] = 2, [NEW] = 2, [OUTSIDE] = 2, [FAINTING] = 1,
};

static struct {
	char folder[64];
	enum mood mood;
	int listener, data[2];
	pid_t asker;
	unsigned taken;   /* of its CPUs, by whomever */
	bool closed;      /* it was told to */
	char request[512];
	size_t request_len;
} agent;

/* ---- the agent */

static struct sockaddr_un address_of(unsigned port)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(a.sun_path, sizeof a.sun_path, "%.64s/%u", agent.folder, port);
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

static int dial(const struct agent_way *way, unsigned port)
{
	const struct sockaddr_un a = address_of(port);
	const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(way->cid, 3);
	return connect(s, (const struct sockaddr *)&a, sizeof a) ? -1 : s;
}

static size_t put(char *to, size_t at, const void *data, size_t len)
{
	memcpy(to + at, data, len);
	return at + len;
}

static size_t put_number(char *to, size_t at, uint64_t x, size_t bytes)
{
	const uint16_t x16 = (uint16_t)x;
	const uint32_t x32 = (uint32_t)x;
	return bytes == 2 ? put(to, at, &x16, 2) : bytes == 4 ? put(to, at, &x32, 4) : put(to, at, &x, 8);
}

static size_t put_sized(char *to, size_t at, const char *text, size_t bytes)
{
	return put(to, put_number(to, at, strlen(text), bytes), text, strlen(text));
}

/* The head of a trace.dat of version 6. */
static size_t make_head(char *to)
{
	size_t at = put(to, 0, "\x17\x08\x44tracing6\0\0\x08\0\x10\0\0", 18);
	to[10] = agent.mood == NEW ? '8' : '6';
	at = put_sized(to, put(to, at, "header_page", 12), agent.mood == OUTSIDE ? HEADER_OUTSIDE : HEADER_PAGE, 8);
	at = put_sized(to, put(to, at, "header_event", 13), "an event\n", 8);
	at = put_sized(to, put_number(to, at, 1, 4), "name: function\n", 8);
	at = put_number(to, put(to, put_number(to, at, 1, 4), "sched", 6), 1, 4);
	at = put_sized(to, at, SWITCH, 8);
	at = put_sized(to, at, "ffff T symbol\n", 4);
	at = put_sized(to, at, "", 4);
	at = put_sized(to, at, "12 make\n", 8);
	at = put_number(to, at, 2, 4);
	at = put(to, at, "options  ", 10);
	at = put_sized(to, put_number(to, at, 4, 2), "[x86-tsc]", 4);
	at = put_sized(to, put_number(to, at, 5, 2), "Linux web 6.1.0 x86_64", 4);
	return put_number(to, at, 0, 2);
}

static void respond(int s)
{
	unsigned char part[40] = { 0 };
	wire_put_u32(part + 4, agent.mood == CROWDED ? UINT32_MAX : agent.mood == EMPTY ? 0 : 2);
	wire_put_u32(part + 8, agent.mood == MUMBLING ? 7 : PAGE);
	wire_send(s, WIRE_RESPONSE, part, sizeof part, "1000\0001001", agent.mood == SHORT_OF_PORTS ? 5 : 10);
}

/* CPU 0: a page before which 7 events are lost, and a part of one before which some are; CPU 1: nothing. */
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

static void serve(int s, const int *data)
{
	struct wire_message m = { 0 };
	char head[4096];
	const size_t len = make_head(head);
	if (wire_receive(s, &m) == 0 && m.command == WIRE_REQUEST && m.part_len == 16 &&
	    m.rest_len < sizeof agent.request) {
		memcpy(agent.request, m.rest, m.rest_len);
		agent.request_len = m.rest_len;
		if (agent.mood == LOUD)
			assert_int_equal(write(s, "\x7f\xff\xff\xff\0\0\0\7\0\0\0\0", 12), 12);
		else if (agent.mood != OLD)
			respond(s);
	}
	if (agent.request_len && says_head[agent.mood] > 0)
		wire_send(s, WIRE_DATA, NULL, 0, head, 50);
	if (agent.request_len && says_head[agent.mood] > 1) {
		wire_send(s, WIRE_DATA, NULL, 0, head + 50, len - 50 - (agent.mood == CUT));
		wire_send(s, WIRE_END_OF_DATA, NULL, 0, NULL, 0);
	}
	if (agent.mood == DYING)
		send_pages(data);
	if (agent.mood == WILLING && wire_receive(s, &m) == 0 && m.command == WIRE_CLOSE) {
		send_pages(data);
		wire_send(s, WIRE_CLOSED, NULL, 0, NULL, 0);
	}
	free(m.bytes);
}

static void kill_when(enum mood moment)
{
	if (agent.mood == moment)
		kill(agent.asker, SIGKILL);
}

/* Kills who asks when a part of the answer has been read, by whomever. */
static void kill_while_responding(int s)
{
	char bytes[200];
	int pair[2], left = 1;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	respond(pair[0]);
	const ssize_t len = read(pair[1], bytes, sizeof bytes), head = 12;
	assert_int_equal(write(s, bytes, (size_t)head), head);
	while (ioctl(s, SIOCOUTQ, &left) == 0 && left > 0)
		usleep(1000);
	kill_when(KILLER_ANSWERING);
	assert_int_equal(write(s, bytes + head, (size_t)(len - head)), len - head);
	close(pair[0]);
	close(pair[1]);
}

static bool is_taken(int data)
{
	const struct timeval patience = { 100, 0 };
	int s;
	setsockopt(data, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	while ((s = accept(data, NULL, NULL)) < 0 && errno == EINTR)
		continue;
	return s >= 0;
}

/* Kills who asks, at that moment, and does what trace-cmd does: nothing else is heard until its CPUs are taken; then it
 * describes its events, whoever reads that; then it traces until it is told to close. */
static void serve_killer(int s, const int *data)
{
	struct wire_message m = { 0 };
	char head[4096];
	const size_t len = make_head(head);
	assert_int_equal(wire_receive(s, &m), 0);
	kill_when(KILLER_ASKED);
	if (agent.mood == KILLER_ANSWERING)
		kill_while_responding(s);
	else
		respond(s);
	for (int i = 0; i < 2; i++)
		agent.taken += is_taken(data[i]);
	wire_send(s, WIRE_DATA, NULL, 0, head, 50);
	kill_when(KILLER_DESCRIBING);
	wire_send(s, WIRE_DATA, NULL, 0, head + 50, len - 50);
	wire_send(s, WIRE_END_OF_DATA, NULL, 0, NULL, 0);
	kill_when(KILLER_TRACING);
	agent.closed = wire_receive(s, &m) == 0 && m.command == WIRE_CLOSE;
	wire_send(s, WIRE_CLOSED, NULL, 0, NULL, 0);
	free(m.bytes);
}

static void *live(void *arg)
{
	const int s = accept(agent.listener, NULL, NULL);
	(void)arg;
	if (s >= 0 && agent.mood >= KILLER_ASKED)
		serve_killer(s, agent.data);
	else if (s >= 0 && agent.mood != BUSY)
		serve(s, agent.data);
	close(s);
	return NULL;
}

static int begin(void **state)
{
	(void)state;
	agent.mood = WILLING;
	agent.request_len = 0;
	snprintf(agent.folder, sizeof agent.folder, "/tmp/stealscope-test-XXXXXX");
	assert_non_null(mkdtemp(agent.folder));
	agent.listener = listen_at(823);
	agent.data[0] = listen_at(1000);
	agent.data[1] = listen_at(1001);
	agent.taken = 0;
	agent.closed = false;
	return 0;
}

static int end(void **state)
{
	(void)state;
	const unsigned port[] = { 823, 1000, 1001 };
	close(agent.listener);
	close(agent.data[0]);
	close(agent.data[1]);
	for (size_t i = 0; i < 3; i++)
		unlink(address_of(port[i]).sun_path);
	return rmdir(agent.folder);
}

/* ---- what is said to it */

struct answer { char text[3 * PAGE], errors[400]; size_t len; int status; };

static void read_all(int fd, char *to, size_t most, size_t *len)
{
	ssize_t n;
	*len = 0;
	while ((n = read(fd, to + *len, most - 1 - *len)) > 0 || (n < 0 && errno == EAGAIN)) {
		*len += n > 0 ? (size_t)n : 0;
		usleep(1000);
	}
	to[*len] = '\0';
}

static struct answer *talk(const char *words)
{
	static struct answer a;
	struct agent_way way = { 3, 823, dial, 0, 1, 2, agent.mood == BUSY ? LONGER : AGENT_LOOK, 0 };
	struct channel c;
	struct error err;
	size_t len;
	pthread_t thread;
	assert_int_equal(channel_start(&c, NULL, agent_relay, &way, &err), 0);
	agent.asker = c.pid;  /* before there is an agent that kills it: until then its call waits */
	pthread_create(&thread, NULL, live, NULL);
	assert_int_equal(write(c.in, words, strlen(words)), strlen(words));
	if (agent.mood != DYING && agent.mood < KILLER_ASKED)
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
	const struct answer *a = talk(ORDER("trace", "0") "more\ngo\nstop\nsend\nbye\n");
	assert_memory_equal(a->text, before, strlen(before));
	assert_memory_equal(agent.request, request, sizeof request);
	assert_int_equal(agent.request_len, sizeof request);
	const char *at = strstr(a->text, "K header_page"), *pages = memmem(a->text, a->len, "K pages/cpu0 8192\nfirst", 22);
	assert_non_null(at);
	assert_non_null(strstr(at, HEADER_PAGE "K header_event 9\nan event\nK formats 35\n" SWITCH
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
	assert_string_equal(talk(ORDER("check", "0"))->text, HELLO "K end 0\n");
}

static void test_clean(void **state)
{
	(void)state;
	assert_string_equal(talk(ORDER("clean", "0"))->text, "K cleaned 16\nerased 0\nleft 0\nK end 0\n");
}

static void test_flight(void **state)
{
	(void)state;
	assert_string_equal(talk(ORDER("trace", "1"))->text, "K refuse 4\nturn");
}

#define REFUSED "it does not take the request: is it older than 3.1, or its kernel without the clock?"

static void test_refusals(void **state)
{
	(void)state;
	static const struct { enum mood mood; const char *text, *why; } cases[] = {
		{ BUSY, "", "it hangs up: does it record for somebody else?" },
		{ MUMBLING, READY, "its answer is not understood" },
		{ SHORT_OF_PORTS, READY, "its answer is not understood" },
		{ CUT, READY, "what it says of its events is not understood" },
		{ NEW, READY, "what it says of its events is not understood" },
		{ OUTSIDE, READY, "its pages are not understood" },
		{ FAINTING, READY, "Connection reset by peer" },
		{ CROWDED, READY, "its answer is not understood" },
		{ EMPTY, READY, "its answer is not understood" },
		{ OLD, READY, REFUSED },
		{ LOUD, READY, REFUSED },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (i)
			begin(state);
		agent.mood = cases[i].mood;
		const struct answer *a = talk(ORDER("trace", "0") "go\nstop\nsend\n");
		char *why = mem_printf("agent of trace-cmd at vsock 3:823: %s\n", cases[i].why);
		assert_string_equal(a->text, cases[i].text);
		assert_string_equal(a->errors, why);
		assert_int_equal(WEXITSTATUS(a->status), 1);
		free(why);
		end(state);
	}
	begin(state);
}

/* Who asks is killed: the agent is brought to its proper end all the same, for else it does not put back what it found. */
static void test_killed(void **state)
{
	(void)state;
	for (enum mood mood = KILLER_ASKED; mood <= KILLER_TRACING; mood++) {
		if (mood > KILLER_ASKED)
			begin(state);
		agent.mood = mood;
		const struct answer *a = talk(ORDER("trace", "0") "go\n");
		assert_int_equal(WTERMSIG(a->status), SIGKILL);
		assert_int_equal(agent.taken, 2);
		assert_true(agent.closed);
		if (mood < KILLER_TRACING)
			end(state);
	}
}

/* What was killed altogether is made up for by a recording of nothing. */
static void test_reset(void **state)
{
	(void)state;
	static const char request[] = "\0\0\0\0\0\0\0\x4e\0\0\0\x0b" "-i\0-C\0local\0-b\0" "4096\0"
		"--file-version\0" "6\0-O\0record-tgid\0-e\0sched:sched_switch";
	assert_string_equal(talk("key=K task=reset clocks='' events=''\nstealscope_guest\n")->text,
	                    "K cleaned 16\nerased 0\nleft 0\nK end 0\n");
	assert_memory_equal(agent.request, request, sizeof request);
}

/* It ends while it records. */
static void test_dies(void **state)
{
	(void)state;
	agent.mood = DYING;
	const struct answer *a = talk(ORDER("trace", "0") "go\n");
	assert_non_null(strstr(a->text, "K started 0\n"));
	assert_string_equal(a->errors, "agent of trace-cmd at vsock 3:823: it has ended\n");
}

static void test_nobody(void **state)
{
	(void)state;
	close(agent.listener);
	unlink(address_of(823).sun_path);
	agent.listener = -1;
	const struct answer *a = talk(ORDER("trace", "0"));
	assert_string_equal(a->errors, "agent of trace-cmd at vsock 3:823: No such file or directory\n");
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
	system[0] = '/';  /* no path is made of it */
	assert_int_equal(agent_head_parse(&h, head, len), -1);
	agent_head_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_recorded, begin, end),
		cmocka_unit_test_setup_teardown(test_check, begin, end),
		cmocka_unit_test_setup_teardown(test_clean, begin, end),
		cmocka_unit_test_setup_teardown(test_flight, begin, end),
		cmocka_unit_test_setup_teardown(test_refusals, begin, end),
		cmocka_unit_test_setup_teardown(test_dies, begin, end),
		cmocka_unit_test_setup_teardown(test_killed, begin, end),
		cmocka_unit_test_setup_teardown(test_reset, begin, end),
		cmocka_unit_test_setup_teardown(test_nobody, begin, end),
		cmocka_unit_test(test_head),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
