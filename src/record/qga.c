/* Runs a shell in a guest through QEMU's guest agent: json requests on the agent's socket, or through libvirt's virsh.
 *
 * The agent can start a program, pass input to it once, and return its output after the program has ended. So the shell
 * reads from one FIFO in /run of the guest and writes to another one. For each block of our standard input, a program in
 * the guest writes the block to the first FIFO; one program after another reads a block from the second FIFO. Runs in a
 * child process. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/json_field.h"
#include "base/base64.h"
#include "record/transport.h"

#define CHUNK 65536              /* bytes that one program reads from the FIFO */
#define ANSWER_MAX (1 << 20)     /* bytes of an answer of the agent */
#define LAST_DATA_TIMEOUT 60     /* s after which the guest discards output that was not read */
#define EXIT_BY_SIGNAL 255       /* exit status reported for a program that was killed by a signal */
#define POLL_MS_MIN 10           /* interval of polling while data arrives, ms */
#define POLL_MS_MAX 320          /* interval of polling without data, ms */
#define BAD_ANSWER "protocol error: unexpected answer to a request"
#define END_MARKER_LEN 17        /* bytes */
#define SYNC_BYTE 0xff           /* ends an incomplete request, and precedes the answer to guest-sync-delimited */

struct agent {
	const struct qga *options;
	int s;                /* the agent's socket; -1: virsh is used */
	char *dir;            /* directory of the FIFOs in the guest */
	char *answer;         /* last answer; [ANSWER_MAX] */
	char end_marker[END_MARKER_LEN + 1];  /* random text that ends the shell's output */
	size_t marker_len;    /* length of the prefix of end_marker with which the output received so far ends */
};

static int report_failure(const char *problem)
{
	dprintf(2, "guest agent: %s\n", problem);
	return -1;
}

/* ---- one request */

/* Reads an answer up to a line break. marked: skips everything before a SYNC_BYTE. Returns -1 on a timeout. */
static int read_answer(const struct agent *a, bool marked)
{
	size_t used = 0;
	char *answer = a->answer;
	struct pollfd p = { a->s, POLLIN, 0 };
	while (used + 1 < ANSWER_MAX) {
		const int ready = poll(&p, 1, a->options->timeout_ms);
		const ssize_t n = ready > 0 ? read(a->s, answer + used, ANSWER_MAX - 1 - used) : -1;
		if (ready <= 0)
			return report_failure("no answer");
		if (n <= 0)
			return used ? 0 : report_failure("it closed the connection");
		used += (size_t)n;
		answer[used] = '\0';
		const char *from = marked ? memrchr(answer, SYNC_BYTE, used) : answer;
		if (from && strchr(from, '\n'))
			return 0;
	}
	return report_failure("protocol error: the answer is too long");
}

static int send_to_socket(const struct agent *a, const char *request, bool marked)
{
	char *line = mem_printf("%s\n", request);
	const size_t len = strlen(line);
	size_t at = 0;
	for (ssize_t n; at < len && (n = write(a->s, line + at, len - at)) > 0;)
		at += (size_t)n;
	free(line);
	return at == len ? read_answer(a, marked) : report_failure(strerror(errno));
}

static int send_with_virsh(const struct agent *a, const char *request)
{
	char *argv[] = { "virsh", "-q", "-c", "qemu:///system", "qemu-agent-command", "--timeout", "15", "--",
		(char *)(uintptr_t)a->options->domain, (char *)(uintptr_t)request, NULL };
	struct channel c;
	struct error err = ERROR_INIT;
	if (channel_start(&c, argv, NULL, NULL, &err))
		return report_failure(err.text);
	struct pollfd p = { c.out, POLLIN, 0 };
	size_t used = 0;
	ssize_t n = 1;
	while (n > 0 && used + 1 < ANSWER_MAX && poll(&p, 1, a->options->timeout_ms) > 0)
		if ((n = read(c.out, a->answer + used, ANSWER_MAX - 1 - used)) > 0)
			used += (size_t)n;
	a->answer[used] = '\0';
	char why[300] = "no answer from virsh";
	n = used ? 0 : read(c.err, why, sizeof why - 1);
	if (n > 0)
		why[n] = '\0';
	channel_end(&c);
	return used ? 0 : report_failure(why);
}

/* Sends a request, which it frees. Returns the member "return" of the answer; NULL: failure, which is reported. */
static json_object *agent_request(const struct agent *a, json_object *request)
{
	const char *text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
	const int rc = a->s >= 0 ? send_to_socket(a, text, false) : send_with_virsh(a, text);
	json_object *answer = rc ? NULL : json_tokener_parse(a->answer), *value = NULL, *why;
	json_object_put(request);
	if (answer && json_object_object_get_ex(answer, "return", &value))
		json_object_get(value);
	else if (answer && json_object_object_get_ex(answer, "error", &why) && json_object_object_get_ex(why, "desc", &why))
		report_failure(json_object_is_type(why, json_type_string) ? json_object_get_string(why) : BAD_ANSWER);
	else if (rc == 0)
		report_failure(BAD_ANSWER);
	json_object_put(answer);
	return value;
}

static json_object *make_request(const char *command, json_object *arguments)
{
	json_object *request = json_new_object();
	json_object_object_add(request, "execute", json_object_new_string(command));
	json_object_object_add(request, "arguments", arguments);
	return request;
}

/* ---- programs */

/* Starts `sh -c text` in the guest. input: passed to its standard input; NULL: none. capture: the agent collects the
 * output. Returns its PID in the guest, or -1. */
static int64_t start_program(const struct agent *a, const char *text, const void *input, size_t len, bool capture)
{
	json_object *arguments = json_new_object(), *argv = json_new_array(), *pid;
	json_object_array_add(argv, json_object_new_string("-c"));
	json_object_array_add(argv, json_object_new_string(text));
	json_object_object_add(arguments, "path", json_object_new_string("/bin/sh"));
	json_object_object_add(arguments, "arg", argv);
	json_object_object_add(arguments, "capture-output", json_object_new_boolean(capture));
	if (input) {
		char *coded = base64_encode(input, len);
		json_object_object_add(arguments, "input-data", json_object_new_string(coded));
		free(coded);
	}
	json_object *value = agent_request(a, make_request("guest-exec", arguments));
	const int64_t number = value && json_object_object_get_ex(value, "pid", &pid) ? json_object_get_int64(pid) : -1;
	if (value && number < 0)
		report_failure(BAD_ANSWER);
	json_object_put(value);
	return number < 0 ? -1 : number;
}

static bool write_output(const void *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		const ssize_t n = write(1, (const char *)data + at, len - at);
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

/* Writes data from the FIFO to our output, except the end marker, which may be split over two calls. */
static bool write_data(struct agent *a, const unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (a->marker_len < END_MARKER_LEN && data[i] == (unsigned char)a->end_marker[a->marker_len]) {
			a->marker_len++;
			continue;
		}
		/* The bytes held back by the previous call are not the end marker: write them. */
		const size_t held_back = a->marker_len > i ? a->marker_len - i : 0;
		if (held_back && !write_output(a->end_marker, held_back))
			return false;
		a->marker_len = data[i] == (unsigned char)a->end_marker[0];
	}
	const size_t withheld = a->marker_len < len ? a->marker_len : len;
	return write_output(data, len - withheld);
}

/* Queries a program. Returns 1: it has ended and its output of *bytes bytes was copied to ours; 0: it runs; -1: error.
 * *status: its exit status. */
static int poll_program(struct agent *a, int64_t pid, int *status, size_t *bytes)
{
	json_object *arguments = json_new_object(), *x;
	json_object_object_add(arguments, "pid", json_object_new_int64(pid));
	json_object *value = agent_request(a, make_request("guest-exec-status", arguments));
	if (!value)
		return -1;
	const bool ended = json_object_object_get_ex(value, "exited", &x) && json_object_get_boolean(x);
	*bytes = 0;
	*status = ended && json_object_object_get_ex(value, "exitcode", &x) ? json_object_get_int(x) : -1;
	int rc = ended;
	if (ended && json_object_object_get_ex(value, "out-data", &x)) {
		unsigned char *data = x ? base64_decode(json_object_get_string(x), bytes) : NULL;
		if (!data)
			rc = report_failure("protocol error: invalid base64 in the output of a program");
		else if (!write_data(a, data, *bytes))
			rc = -1;
		free(data);
	}
	json_object_put(value);
	return rc;
}

static void sleep_ms(unsigned ms)
{
	const struct timespec t = { 0, (long)ms * 1000000 };
	nanosleep(&t, NULL);
}

/* Runs `sh -c text` in the guest to its end. Returns its exit status, or -1 if the agent does not answer. */
static int run_program(struct agent *a, const char *text, const void *input, size_t len)
{
	int status = -1, ended = 0;
	size_t bytes;
	const int64_t pid = start_program(a, text, input, len, false);
	while (pid >= 0 && (ended = poll_program(a, pid, &status, &bytes)) == 0)
		sleep_ms(POLL_MS_MIN);
	return ended != 1 ? -1 : status < 0 ? EXIT_BY_SIGNAL : status;
}

/* Writes data to the shell's input FIFO. */
static int write_shell_input(struct agent *a, const void *data, size_t len)
{
	char *text = mem_printf("exec cat >%s/in", a->dir);
	const int status = run_program(a, text, data, len);
	free(text);
	return status == 0 ? 0 : -1;
}

/* ---- the relay */

static int open_agent(struct agent *a)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	a->s = -1;
	if (!a->options->socket)
		return 0;
	if (strlen(a->options->socket) >= sizeof address.sun_path)
		return report_failure("the path of the agent's socket is too long");
	snprintf(address.sun_path, sizeof address.sun_path, "%s", a->options->socket);
	a->s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (a->s < 0 || connect(a->s, (const struct sockaddr *)&address, sizeof address))
		return report_failure(strerror(errno));
	return 0;
}

/* Synchronizes with the agent, since an earlier client may have left an incomplete request or an unread answer. */
static int synchronize_agent(const struct agent *a, int64_t id)
{
	if (a->s < 0)
		return 0;  /* libvirt synchronizes by itself */
	char *request = mem_printf("%c{\"execute\":\"guest-sync-delimited\",\"arguments\":{\"id\":%lld}}", SYNC_BYTE,
	                           (long long)id);
	int rc = send_to_socket(a, request, true);
	for (bool matches = false; rc == 0 && !matches; rc = matches ? 0 : read_answer(a, true)) {
		const char *mark = memrchr(a->answer, SYNC_BYTE, strlen(a->answer));
		json_object *answer = mark ? json_tokener_parse(mark + 1) : NULL, *value;
		matches = answer && json_object_object_get_ex(answer, "return", &value) && json_object_get_int64(value) == id;
		json_object_put(answer);
	}
	free(request);
	return rc;
}

/* Starts the shell between two FIFOs. A process in the guest keeps the FIFOs open until the last data was read, or until
 * LAST_DATA_TIMEOUT. Returns -1 if the shell does not start. */
static int start_shell(struct agent *a)
{
	char *text = mem_printf(
		"d=%s; umask 077; mkdir $d && mkfifo $d/in $d/out $d/over && { exec 5<>$d/out 6<>$d/in;"
		" sh <&6 >&5 2>/dev/null 5>&- 6>&-; printf '\\001%%s' %s >&5;"
		" { trap 'kill $s' TERM; sleep %d & s=$!; wait $s && echo >$d/over; } >/dev/null 2>&1 5>&- 6>&- &"
		" read x <$d/over; kill $!; }; rm -rf $d",
		a->dir, a->end_marker + 1, LAST_DATA_TIMEOUT);
	const int64_t pid = start_program(a, text, NULL, 0, false);
	free(text);
	text = mem_printf("test -p %s/over", a->dir);
	int absent = pid < 0 ? -1 : EXIT_BY_SIGNAL;
	for (int tries = 0; tries < 100 && absent > 0; tries++) {
		absent = run_program(a, text, NULL, 0);
		sleep_ms(POLL_MS_MIN);
	}
	free(text);
	return absent > 0 ? report_failure("cannot create a FIFO in /run of the guest") : absent;
}

/* Copies between our standard files and the FIFOs until the end marker arrives. Returns -1 on failure. */
static int relay_streams(struct agent *a)
{
	char *text = mem_printf("exec dd if=%s/out bs=%d count=1 2>/dev/null", a->dir, CHUNK);
	char *commands = mem_resize(NULL, CHUNK, 1);
	static const char farewell[] = "bye\nbye\n";
	struct pollfd p = { 0, POLLIN, 0 };
	unsigned wait = POLL_MS_MIN;
	int64_t reader = -1;
	int rc = 0, status;
	while (rc == 0 && a->marker_len < END_MARKER_LEN) {
		size_t bytes = 0;
		if (reader < 0 && (reader = start_program(a, text, NULL, 0, true)) < 0)
			break;
		const int ended = poll_program(a, reader, &status, &bytes);
		wait = ended > 0 ? POLL_MS_MIN : wait < POLL_MS_MAX ? wait * 2 : wait;
		if (ended > 0 && bytes == 0)
			rc = report_failure("the shell in the guest ended without the end marker");
		if (ended < 0 || rc)
			break;
		if (ended > 0)
			reader = -1;
		if (poll(&p, p.fd < 0 ? 0 : 1, ended > 0 ? 0 : (int)wait) <= 0)
			continue;
		const ssize_t n = read(0, commands, CHUNK);
		rc = n > 0 ? write_shell_input(a, commands, (size_t)n) : write_shell_input(a, farewell, strlen(farewell));
		if (n <= 0)
			p.fd = -1;
		wait = POLL_MS_MIN;
	}
	free(commands);
	free(text);
	text = mem_printf("echo >%s/over", a->dir);
	if (a->marker_len == END_MARKER_LEN)
		run_program(a, text, NULL, 0);
	free(text);
	return a->marker_len == END_MARKER_LEN ? 0 : -1;
}

int qga_relay(void *arg)
{
	struct agent a = { .options = arg };
	uint64_t key[3] = { 0 };
	signal(SIGTERM, SIG_IGN);  /* this process must live until it has passed the end of the input on to the guest */
	if (open_agent(&a) || getrandom(key, sizeof key, 0) != sizeof key)
		return 1;
	snprintf(a.end_marker, sizeof a.end_marker, "\001%016llx", (unsigned long long)key[0]);
	a.answer = mem_new(ANSWER_MAX, 1);
	a.dir = mem_printf("/run/stealscope-guest-%016llx", (unsigned long long)key[1]);
	return synchronize_agent(&a, (int64_t)(key[2] >> 16)) || start_shell(&a) || relay_streams(&a) ? 1 : 0;
}
