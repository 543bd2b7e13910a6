/* A shell through QEMU's guest agent: requests in json, on the agent's socket or by way of libvirt's virsh.
 *
 * The agent starts programs, gives them input once, and tells their output when they have ended.  So the shell reads from a
 * FIFO and writes to another, in a folder of the guest's memory; one short program puts what comes on our standard input
 * into the first, one after another takes a piece out of the second.  Runs in a child process. */
#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/base64.h"
#include "record/transport.h"

#define PIECE 65536              /* bytes that one program takes out */
#define ANSWER_LONGEST (1 << 20) /* of the agent */
#define FORGOTTEN 60              /* s after which nobody takes the last word */
#define ODD_EXIT 255             /* of a program that did not exit by itself */
#define IMPATIENCE 10            /* ms between two questions, at first */
#define PATIENCE 320             /* ms, at last */
#define NOT_UNDERSTOOD "its answer is not understood"
#define OVER 17                  /* bytes */
#define MARK 0xff                /* ends half a request, and begins the answer that is asked for in this way */

struct agent {
	const struct qga *how;
	int s;                /* the socket, or -1: virsh */
	char *folder;         /* in the guest */
	char *answer;
	char over[OVER + 1];  /* the last that comes out of the FIFO */
	size_t held;          /* bytes of it that perhaps have come */
};

static int complain(const char *what)
{
	dprintf(2, "guest agent: %s\n", what);
	return -1;
}

/* ---- one request */

/* Up to a line break; or up to that behind a mark. */
static int read_answer(const struct agent *a, bool marked)
{
	size_t used = 0;
	char *answer = a->answer;
	struct pollfd p = { a->s, POLLIN, 0 };
	while (used + 1 < ANSWER_LONGEST) {
		const int ready = poll(&p, 1, a->how->patience);
		const ssize_t n = ready > 0 ? read(a->s, answer + used, ANSWER_LONGEST - 1 - used) : -1;
		if (ready <= 0)
			return complain("does not answer");
		if (n <= 0)
			return used ? 0 : complain("has closed its socket");
		used += (size_t)n;
		answer[used] = '\0';
		const char *from = marked ? memrchr(answer, MARK, used) : answer;
		if (from && strchr(from, '\n'))
			return 0;
	}
	return complain("its answer is too long");
}

static int ask_socket(const struct agent *a, const char *request, bool marked)
{
	char *line = mem_printf("%s\n", request);
	const size_t len = strlen(line);
	size_t at = 0;
	for (ssize_t n; at < len && (n = write(a->s, line + at, len - at)) > 0;)
		at += (size_t)n;
	free(line);
	return at == len ? read_answer(a, marked) : complain(strerror(errno));
}

static int ask_virsh(const struct agent *a, const char *request)
{
	char *argv[] = { "virsh", "-q", "-c", "qemu:///system", "qemu-agent-command", "--timeout", "15", "--",
		(char *)(uintptr_t)a->how->domain, (char *)(uintptr_t)request, NULL };
	struct channel c;
	struct error err = ERROR_INIT;
	if (channel_start(&c, argv, NULL, NULL, &err))
		return complain(err.text);
	struct pollfd p = { c.out, POLLIN, 0 };
	size_t used = 0;
	ssize_t n = 1;
	while (n > 0 && used + 1 < ANSWER_LONGEST && poll(&p, 1, a->how->patience) > 0)
		if ((n = read(c.out, a->answer + used, ANSWER_LONGEST - 1 - used)) > 0)
			used += (size_t)n;
	a->answer[used] = '\0';
	char why[300] = "virsh does not answer";
	n = used ? 0 : read(c.err, why, sizeof why - 1);
	if (n > 0)
		why[n] = '\0';
	channel_end(&c);
	return used ? 0 : complain(why);
}

/* Its return value, or NULL.  Takes the request. */
static json_object *ask(const struct agent *a, json_object *request)
{
	const char *text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
	const int rc = a->s >= 0 ? ask_socket(a, text, false) : ask_virsh(a, text);
	json_object *answer = rc ? NULL : json_tokener_parse(a->answer), *value = NULL, *why;
	json_object_put(request);
	if (answer && json_object_object_get_ex(answer, "return", &value))
		json_object_get(value);
	else if (answer && json_object_object_get_ex(answer, "error", &why) && json_object_object_get_ex(why, "desc", &why))
		complain(json_object_get_string(why));
	else if (rc == 0)
		complain(NOT_UNDERSTOOD);
	json_object_put(answer);
	return value;
}

static json_object *request_of(const char *command, json_object *arguments)
{
	json_object *request = json_object_new_object();
	json_object_object_add(request, "execute", json_object_new_string(command));
	json_object_object_add(request, "arguments", arguments);
	return request;
}

/* ---- programs */

/* Starts sh -c with that text; its PID in the guest, or -1. */
static int64_t start(const struct agent *a, const char *text, const void *input, size_t len, bool capture)
{
	json_object *arguments = json_object_new_object(), *argv = json_object_new_array(), *pid;
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
	json_object *value = ask(a, request_of("guest-exec", arguments));
	const int64_t number = value && json_object_object_get_ex(value, "pid", &pid) ? json_object_get_int64(pid) : -1;
	if (value && number < 0)
		complain(NOT_UNDERSTOOD);
	json_object_put(value);
	return number < 0 ? -1 : number;
}

static bool put(const void *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		const ssize_t n = write(1, (const char *)data + at, len - at);
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

/* What came out of the FIFO goes to our output, but for its last word, which may come in two pieces. */
static bool put_piece(struct agent *a, const unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (a->held < OVER && data[i] == (unsigned char)a->over[a->held]) {
			a->held++;
			continue;
		}
		/* It was not that: what was held of earlier pieces goes first. */
		const size_t earlier = a->held > i ? a->held - i : 0;
		if (earlier && !put(a->over, earlier))
			return false;
		a->held = data[i] == (unsigned char)a->over[0];
	}
	const size_t kept = a->held < len ? a->held : len;
	return put(data, len - kept);
}

/* 1: it has ended, and its output, if any, went to ours; 0: it runs; -1.  *status: what it exited with. */
static int look(struct agent *a, int64_t pid, int *status, size_t *bytes)
{
	json_object *arguments = json_object_new_object(), *x;
	json_object_object_add(arguments, "pid", json_object_new_int64(pid));
	json_object *value = ask(a, request_of("guest-exec-status", arguments));
	if (!value)
		return -1;
	const bool ended = json_object_object_get_ex(value, "exited", &x) && json_object_get_boolean(x);
	*bytes = 0;
	*status = ended && json_object_object_get_ex(value, "exitcode", &x) ? json_object_get_int(x) : -1;
	int rc = ended;
	if (ended && json_object_object_get_ex(value, "out-data", &x)) {
		unsigned char *data = base64_decode(json_object_get_string(x), bytes);
		if (!data)
			rc = complain("what its program has put out is not understood");
		else if (!put_piece(a, data, *bytes))
			rc = -1;
		free(data);
	}
	json_object_put(value);
	return rc;
}

static void doze(unsigned ms)
{
	const struct timespec t = { 0, (long)ms * 1000000 };
	nanosleep(&t, NULL);
}

/* Runs it to its end; what it exited with, or -1: it could not be asked. */
static int run(struct agent *a, const char *text, const void *input, size_t len)
{
	int status = -1, ended = 0;
	size_t bytes;
	const int64_t pid = start(a, text, input, len, false);
	while (pid >= 0 && (ended = look(a, pid, &status, &bytes)) == 0)
		doze(IMPATIENCE);
	return ended != 1 ? -1 : status < 0 ? ODD_EXIT : status;
}

/* What came on our standard input goes into the FIFO. */
static int pass_on(struct agent *a, const void *data, size_t len)
{
	char *text = mem_printf("exec cat >%s/in", a->folder);
	const int status = run(a, text, data, len);
	free(text);
	return status == 0 ? 0 : -1;
}

/* ---- the relay */

static int open_agent(struct agent *a)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	a->s = -1;
	if (!a->how->socket)
		return 0;
	if (strlen(a->how->socket) >= sizeof address.sun_path)
		return complain("the path of its socket is too long");
	snprintf(address.sun_path, sizeof address.sun_path, "%s", a->how->socket);
	a->s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (a->s < 0 || connect(a->s, (const struct sockaddr *)&address, sizeof address))
		return complain(strerror(errno));
	return 0;
}

/* Who spoke to the agent before us may have died in the middle of a request, or not waited for an answer. */
static int synchronize(const struct agent *a, int64_t id)
{
	if (a->s < 0)
		return 0;  /* libvirt does */
	char *request = mem_printf("%c{\"execute\":\"guest-sync-delimited\",\"arguments\":{\"id\":%lld}}", MARK, (long long)id);
	int rc = ask_socket(a, request, true);
	for (bool ours = false; rc == 0 && !ours; rc = ours ? 0 : read_answer(a, true)) {
		const char *mark = memrchr(a->answer, MARK, strlen(a->answer));
		json_object *answer = mark ? json_tokener_parse(mark + 1) : NULL, *value;
		ours = answer && json_object_object_get_ex(answer, "return", &value) && json_object_get_int64(value) == id;
		json_object_put(answer);
	}
	free(request);
	return rc;
}

/* The FIFOs stay open until their last word was taken; or nobody is there any more to take it. */
static int start_shell(struct agent *a)
{
	char *text = mem_printf(
		"d=%s; umask 077; mkdir $d && mkfifo $d/in $d/out $d/over && { exec 5<>$d/out 6<>$d/in;"
		" sh <&6 >&5 2>/dev/null 5>&- 6>&-; printf '\\001%%s' %s >&5;"
		" { trap 'kill $s' TERM; sleep %d & s=$!; wait $s && echo >$d/over; } >/dev/null 2>&1 5>&- 6>&- &"
		" read x <$d/over; kill $!; }; rm -rf $d",
		a->folder, a->over + 1, FORGOTTEN);
	const int64_t pid = start(a, text, NULL, 0, false);
	free(text);
	text = mem_printf("test -p %s/over", a->folder);
	int there = pid < 0 ? -1 : ODD_EXIT;
	for (int tries = 0; tries < 100 && there > 0; tries++) {
		there = run(a, text, NULL, 0);
		doze(IMPATIENCE);
	}
	free(text);
	return there > 0 ? complain("no FIFO can be made in /run there") : there;
}

/* One after another, programs that take a piece out of the FIFO, until the last word has come. */
static int pump(struct agent *a)
{
	char *text = mem_printf("exec dd if=%s/out bs=%d count=1 2>/dev/null", a->folder, PIECE);
	char *words = mem_resize(NULL, PIECE, 1);
	static const char farewell[] = "bye\nbye\n";
	struct pollfd p = { 0, POLLIN, 0 };
	unsigned wait = IMPATIENCE;
	int64_t reader = -1;
	int rc = 0, status;
	while (rc == 0 && a->held < OVER) {
		size_t bytes = 0;
		if (reader < 0 && (reader = start(a, text, NULL, 0, true)) < 0)
			break;
		const int ended = look(a, reader, &status, &bytes);
		wait = ended > 0 ? IMPATIENCE : wait < PATIENCE ? wait * 2 : wait;
		if (ended > 0 && bytes == 0)
			rc = complain("nothing comes out of its shell any more");
		if (ended < 0 || rc)
			break;
		if (ended > 0)
			reader = -1;
		if (poll(&p, p.fd < 0 ? 0 : 1, ended > 0 ? 0 : (int)wait) <= 0)
			continue;
		const ssize_t n = read(0, words, PIECE);
		rc = n > 0 ? pass_on(a, words, (size_t)n) : pass_on(a, farewell, strlen(farewell));
		if (n <= 0)
			p.fd = -1;
		wait = IMPATIENCE;
	}
	free(words);
	free(text);
	text = mem_printf("echo >%s/over", a->folder);
	if (a->held == OVER)
		run(a, text, NULL, 0);
	free(text);
	return a->held == OVER ? 0 : -1;
}

int qga_relay(void *arg)
{
	struct agent a = { .how = arg };
	uint64_t key[3] = { 0 };
	signal(SIGTERM, SIG_IGN);  /* the end of the input tells it, and then it tells the guest */
	if (open_agent(&a) || getrandom(key, sizeof key, 0) != sizeof key)
		return 1;
	snprintf(a.over, sizeof a.over, "\001%016llx", (unsigned long long)key[0]);
	a.answer = mem_new(ANSWER_LONGEST, 1);
	a.folder = mem_printf("/run/stealscope-guest-%016llx", (unsigned long long)key[1]);
	return synchronize(&a, (int64_t)(key[2] >> 16)) || start_shell(&a) || pump(&a) ? 1 : 0;
}
