#include "export/http.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

#define PATIENCE 600     /* s without a byte from the server, or to it */
#define ANSWER_LINE 1024 /* bytes of a line of the head, or of a refusal, that are kept */

/* ---- URLs */

static int hex(char c)
{
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 0x20) : NULL;
	return at ? (int)(at - digits) : -1;
}

/* n bytes, percent-decoded; NULL: they hold a control character, or a wrong escape. */
static char *decode(const char *text, size_t n)
{
	char *out = mem_new(n + 1, 1), *to = out;
	for (const char *end = text + n; text < end; text++) {
		int c = (unsigned char)*text;
		if (c == '%') {
			int high = end - text > 2 ? hex(text[1]) : -1, low = high >= 0 ? hex(text[2]) : -1;
			c = low < 0 ? 0 : high << 4 | low;
			text += 2;
		}
		if (c < 0x20 || c == 0x7f) {
			free(out);
			return NULL;
		}
		*to++ = (char)c;
	}
	*to = '\0';
	return out;
}

static bool take_part(char **out, const char *text, size_t n)
{
	*out = decode(text, n);
	return *out != NULL;
}

/* HOST[:PORT] or [ADDRESS][:PORT] */
static bool parse_host(struct http_place *p, const char *text, size_t n, const char *port)
{
	const char *end = text + n, *close = *text == '[' ? memchr(text, ']', n) : NULL;
	const char *colon = memchr(close ? close : text, ':', (size_t)(end - (close ? close : text)));
	const char *behind = colon ? colon : end, *from = close ? text + 1 : text;
	if (close && close + 1 != behind)
		return false;
	if (colon && (colon + 1 == end || strspn(colon + 1, "0123456789") < (size_t)(end - colon - 1)))
		return false;
	return take_part(&p->host, from, (size_t)((close ? close : behind) - from)) && *p->host &&
	       take_part(&p->port, colon ? colon + 1 : port, colon ? (size_t)(end - colon - 1) : strlen(port));
}

int http_place_parse(struct http_place *p, const char *scheme, const char *text, const char *port, struct error *err)
{
	*p = (struct http_place){ 0 };
	size_t n = strcspn(text, "/");
	const char *slash = text + n, *at = memrchr(text, '@', n), *host = at ? at + 1 : text;
	size_t user = at ? strcspn(text, ":@") : 0;
	bool colon = at && text + user < at && text[user] == ':';
	size_t password = colon ? (size_t)(at - text) - user - 1 : 0;
	if (take_part(&p->user, text, user) && take_part(&p->password, text + user + colon, password) &&
	    parse_host(p, host, (size_t)(slash - host), port) &&
	    take_part(&p->database, slash + !!*slash, strlen(slash + !!*slash)))
		return 0;
	return error_set(err, STATUS_USAGE, "as USER@HOST:PORT/DATABASE; in a name, @ is %40 and / is %2f",
	                 "%s...: not understood", scheme);
}

void http_place_release(struct http_place *p)
{
	free(p->user);
	free(p->password);
	free(p->host);
	free(p->port);
	free(p->database);
	*p = (struct http_place){ 0 };
}

char *http_quote(const char *text)
{
	char *out = mem_new(3 * strlen(text) + 1, 1), *to = out;
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || strchr("-._~", c);
		to += plain ? snprintf(to, 4, "%c", c) : snprintf(to, 4, "%%%02X", c);
	}
	return out;
}

/* ---- Talking */

static int connect_to(const struct http_place *p, const char *who, struct error *err)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	const struct timeval patience = { PATIENCE, 0 };
	struct addrinfo *list = NULL;
	int fd = -1, why = getaddrinfo(p->host, p->port, &hints, &list);
	if (why)
		return error_set(err, STATUS_INPUT, NULL, "%s: %s: %s", who, p->host, gai_strerror(why));
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen)) {
			why = errno;
			close(fd);
			errno = why;
			fd = -1;
		}
	}
	freeaddrinfo(list);
	if (fd < 0)
		return error_system(err, "does its server listen for HTTP there?", "%s: %s:%s", who, p->host, p->port);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	return fd;
}

static int send_all(const struct http *c, const char *bytes, size_t n, struct error *err)
{
	while (n > 0) {
		ssize_t sent = send(c->fd, bytes, n, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return error_system(err, NULL, "%s: the connection broke", c->who);
		bytes += sent;
		n -= (size_t)sent;
	}
	return 0;
}

int http_post(struct http *c, const char *who, const struct http_place *place, const char *path, const char *headers,
              struct error *err)
{
	*c = (struct http){ connect_to(place, who, err), who };
	if (c->fd < 0)
		return -1;
	char *head = mem_printf("POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: stealscope\r\nConnection: close\r\n"
	                        "Transfer-Encoding: chunked\r\n%s\r\n", path, place->host, headers);
	int rc = send_all(c, head, strlen(head), err);
	free(head);
	if (rc)
		http_close(c);
	return rc;
}

int http_send(struct http *c, const void *bytes, size_t n, struct error *err)
{
	char size[24];
	if (n == 0)
		return 0;
	int digits = snprintf(size, sizeof size, "%zx\r\n", n);
	return send_all(c, size, (size_t)digits, err) || send_all(c, bytes, n, err) || send_all(c, "\r\n", 2, err) ? -1 : 0;
}

/* What comes, byte by byte; EINTR is no end. */
struct hearing {
	int fd;
	size_t at, len;
	char buf[8192];
};

static bool refill(struct hearing *h)
{
	ssize_t n;
	do
		n = recv(h->fd, h->buf, sizeof h->buf, 0);
	while (n < 0 && errno == EINTR);
	h->at = 0;
	h->len = n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* A line without its end, cut to the buffer; false: nothing more comes. */
static bool hear_line(struct hearing *h, char line[ANSWER_LINE])
{
	size_t used = 0;
	while (h->at < h->len || refill(h)) {
		char c = h->buf[h->at++];
		if (c == '\n') {
			used -= used && line[used - 1] == '\r';
			line[used] = '\0';
			return true;
		}
		if (used + 1 < ANSWER_LINE)
			line[used++] = c;
	}
	line[used] = '\0';
	return used > 0;
}

/* n bytes of the body, or (UINT64_MAX) all that come.  False: they did not come. */
static bool hear_bytes(struct hearing *h, uint64_t n, http_take *take, void *arg)
{
	while (n > 0 && (h->at < h->len || refill(h))) {
		size_t here = h->len - h->at < n ? h->len - h->at : (size_t)n;
		take(arg, h->buf + h->at, here);
		h->at += here;
		n -= n == UINT64_MAX ? 0 : here;
	}
	return n == 0 || n == UINT64_MAX;
}

static bool hear_chunks(struct hearing *h, http_take *take, void *arg)
{
	char line[ANSWER_LINE], *rest;
	for (;;) {
		if (!hear_line(h, line))
			return false;
		uint64_t n = strtoull(line, &rest, 16);
		if (rest == line || n == UINT64_MAX)
			return false;
		if (n == 0)
			return true;
		if (!hear_bytes(h, n, take, arg) || !hear_line(h, line))
			return false;
	}
}

/* The head of an answer; false: it is none. */
static bool hear_head(struct hearing *h, bool *accepted, bool *chunked)
{
	char line[ANSWER_LINE];
	if (!hear_line(h, line) || strncmp(line, "HTTP/1.", 7) != 0)
		return false;
	*accepted = strncmp(line + 8, " 200", 4) == 0;
	*chunked = false;
	while (hear_line(h, line)) {
		if (*line == '\0')
			return true;
		*chunked |= strcasecmp(line, "Transfer-Encoding: chunked") == 0;
	}
	return false;
}

struct http_said { char *text; size_t size, used; };

static void keep(void *arg, const char *bytes, size_t n)
{
	struct http_said *s = arg;
	size_t room = s->size - 1 - s->used;
	memcpy(s->text + s->used, bytes, n < room ? n : room);
	s->used += n < room ? n : room;
	s->text[s->used] = '\0';
}

int http_hear(struct http *c, http_take *take, void *arg, struct error *err)
{
	char refusal[ANSWER_LINE] = "", line[256];
	struct http_said said = { refusal, sizeof refusal, 0 };
	struct hearing h = { .fd = c->fd };
	struct error ignored;
	bool accepted, chunked, whole = false;
	send_all(c, "0\r\n\r\n", 5, &ignored);  /* what it says counts, also when it did not listen to the end */
	bool heard = hear_head(&h, &accepted, &chunked);
	if (heard && !accepted) {
		take = keep;
		arg = &said;
	}
	if (heard)
		whole = chunked ? hear_chunks(&h, take, arg) : hear_bytes(&h, UINT64_MAX, take, arg);
	http_close(c);
	if (!heard || (accepted && !whole))
		return error_set(err, STATUS_SYSTEM, NULL, "%s: the server hung up without an answer", c->who);
	refusal[strcspn(refusal, "\r\n")] = '\0';
	return accepted ? 0 : error_set(err, STATUS_SYSTEM, NULL, "%s: %s", c->who,
	                                text_escape(line, sizeof line, *refusal ? refusal : "refused"));
}

int http_answer(struct http *c, char *body, size_t size, struct error *err)
{
	char none[1];
	struct http_said said = { body ? body : none, body ? size : sizeof none, 0 };
	said.text[0] = '\0';
	return http_hear(c, keep, &said, err);
}

void http_close(struct http *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
