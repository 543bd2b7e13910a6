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

#define TIMEOUT_S 600     /* s without progress after which a connection fails */
#define HEADER_LINES_MAX 1000  /* an answer with more is refused */
#define LINE_SIZE 1024   /* bytes of a header line or an error message; longer lines are truncated */

/* ---- URLs */

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 0x20) : NULL;
	return at ? (int)(at - digits) : -1;
}

/* Percent-decodes n bytes. NULL: control characters or a malformed escape. The caller frees. */
static char *percent_decode(const char *text, size_t n)
{
	char *out = mem_new(n + 1, 1), *to = out;
	for (const char *end = text + n; text < end; text++) {
		int c = (unsigned char)*text;
		if (c == '%') {
			int high = end - text > 2 ? hex_digit(text[1]) : -1, low = high >= 0 ? hex_digit(text[2]) : -1;
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

static bool decode_part(char **out, const char *text, size_t n)
{
	*out = percent_decode(text, n);
	return *out != NULL;
}

/* Parses HOST[:PORT] or [ADDRESS][:PORT]. port: default. Returns false if the text is malformed. */
static bool parse_host(struct http_location *p, const char *text, size_t n, const char *port)
{
	const char *end = text + n, *close = *text == '[' ? memchr(text, ']', n) : NULL;
	const char *colon = memchr(close ? close : text, ':', (size_t)(end - (close ? close : text)));
	const char *host_end = colon ? colon : end, *from = close ? text + 1 : text;
	if (close && close + 1 != host_end)
		return false;
	if (colon && (colon + 1 == end || strspn(colon + 1, "0123456789") < (size_t)(end - colon - 1)))
		return false;
	return decode_part(&p->host, from, (size_t)((close ? close : host_end) - from)) && *p->host &&
	       decode_part(&p->port, colon ? colon + 1 : port, colon ? (size_t)(end - colon - 1) : strlen(port));
}

int http_location_parse(struct http_location *p, const char *scheme, const char *text, const char *port, struct error *err)
{
	*p = (struct http_location){ 0 };
	size_t n = strcspn(text, "/");
	const char *slash = text + n, *at = memrchr(text, '@', n), *host = at ? at + 1 : text;
	size_t user = at ? strcspn(text, ":@") : 0;
	bool colon = at && text + user < at && text[user] == ':';
	size_t password = colon ? (size_t)(at - text) - user - 1 : 0;
	if (decode_part(&p->user, text, user) && decode_part(&p->password, text + user + colon, password) &&
	    parse_host(p, host, (size_t)(slash - host), port) &&
	    decode_part(&p->database, slash + !!*slash, strlen(slash + !!*slash)))
		return 0;
	return error_set(err, STATUS_USAGE, "use USER@HOST:PORT/DATABASE; write @ in a name as %40, and / as %2f",
	                 "%s...: malformed URL", scheme);
}

void http_location_release(struct http_location *p)
{
	free(p->user);
	free(p->password);
	free(p->host);
	free(p->port);
	free(p->database);
	*p = (struct http_location){ 0 };
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

/* ---- Requests */

static int connect_to(const struct http_location *p, const char *service, struct error *err)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	const struct timeval timeout = { TIMEOUT_S, 0 };
	struct addrinfo *list = NULL;
	int fd = -1, why = getaddrinfo(p->host, p->port, &hints, &list);
	if (why)
		return error_set(err, STATUS_INPUT, NULL, "%s: %s: %s", service, p->host, gai_strerror(why));
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
		return error_system(err, "check that the server accepts HTTP on this port", "%s: cannot connect to %s:%s", service,
		                    p->host, p->port);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
	return fd;
}

static int send_all(const struct http *c, const char *bytes, size_t n, struct error *err)
{
	while (n > 0) {
		ssize_t sent = send(c->fd, bytes, n, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return error_system(err, NULL, "%s: cannot send to the server", c->service);
		bytes += sent;
		n -= (size_t)sent;
	}
	return 0;
}

int http_post(struct http *c, const char *service, const struct http_location *location, const char *path,
              const char *headers, struct error *err)
{
	*c = (struct http){ connect_to(location, service, err), service };
	if (c->fd < 0)
		return -1;
	char *head = mem_printf("POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: stealscope\r\nConnection: close\r\n"
	                        "Transfer-Encoding: chunked\r\n%s\r\n", path, location->host, headers);
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

/* Buffered reader of an answer. */
struct answer_reader {
	int fd;
	size_t at, len;
	char buf[8192];
};

static bool refill_buffer(struct answer_reader *h)
{
	ssize_t n;
	do
		n = recv(h->fd, h->buf, sizeof h->buf, 0);
	while (n < 0 && errno == EINTR);
	h->at = 0;
	h->len = n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* Reads a line without the line break, truncated to the buffer. Returns false at the end of the data. */
static bool read_line(struct answer_reader *h, char line[LINE_SIZE])
{
	size_t used = 0;
	while (h->at < h->len || refill_buffer(h)) {
		char c = h->buf[h->at++];
		if (c == '\n') {
			used -= used && line[used - 1] == '\r';
			line[used] = '\0';
			return true;
		}
		if (used + 1 < LINE_SIZE)
			line[used++] = c;
	}
	line[used] = '\0';
	return used > 0;
}

/* Reads n bytes of the body (UINT64_MAX: to the end). Returns false if the data ended early. */
static bool read_body(struct answer_reader *h, uint64_t n, http_body_fn *on_body, void *arg)
{
	while (n > 0 && (h->at < h->len || refill_buffer(h))) {
		size_t here = h->len - h->at < n ? h->len - h->at : (size_t)n;
		on_body(arg, h->buf + h->at, here);
		h->at += here;
		n -= n == UINT64_MAX ? 0 : here;
	}
	return n == 0 || n == UINT64_MAX;
}

static bool read_chunks(struct answer_reader *h, http_body_fn *on_body, void *arg)
{
	char line[LINE_SIZE], *rest;
	for (;;) {
		if (!read_line(h, line))
			return false;
		uint64_t n = strtoull(line, &rest, 16);
		if (rest == line || n == UINT64_MAX)
			return false;
		if (n == 0)
			return true;
		if (!read_body(h, n, on_body, arg) || !read_line(h, line))
			return false;
	}
}

/* Parses the value of a Content-Length. Returns false if it is not a number. */
static bool parse_length(const char *text, uint64_t *length)
{
	char *rest;
	text += strspn(text, " \t");
	errno = 0;
	*length = strtoull(text, &rest, 10);
	return *text >= '0' && *text <= '9' && !rest[strspn(rest, " \t")] && !errno && *length != UINT64_MAX;
}

/* Reads the head of an answer. *accepted: the status is 200; *length: bytes of the body, UINT64_MAX: up to the end of the
 * connection. Returns false if the data is not HTTP. */
static bool read_head(struct answer_reader *h, bool *accepted, bool *chunked, uint64_t *length)
{
	static const char length_name[] = "Content-Length:";
	char line[LINE_SIZE];
	*length = UINT64_MAX;
	if (!read_line(h, line) || strncmp(line, "HTTP/1.", 7) != 0)
		return false;
	*accepted = strncmp(line + 8, " 200", 4) == 0;
	*chunked = false;
	for (int lines = 0; lines < HEADER_LINES_MAX && read_line(h, line); lines++) {
		if (*line == '\0')
			return true;
		if (!strncasecmp(line, length_name, sizeof length_name - 1) &&
		    !parse_length(line + sizeof length_name - 1, length))
			return false;
		*chunked |= strcasecmp(line, "Transfer-Encoding: chunked") == 0;
	}
	return false;
}

struct http_body { char *text; size_t size, used; };

static void append_body(void *arg, const char *bytes, size_t n)
{
	struct http_body *s = arg;
	size_t space = s->size - 1 - s->used;
	memcpy(s->text + s->used, bytes, n < space ? n : space);
	s->used += n < space ? n : space;
	s->text[s->used] = '\0';
}

int http_read_answer(struct http *c, http_body_fn *on_body, void *arg, struct error *err)
{
	char refusal[LINE_SIZE] = "", line[256];
	struct http_body body = { refusal, sizeof refusal, 0 };
	struct answer_reader h = { .fd = c->fd };
	struct error ignored;
	bool accepted, chunked, complete = false;
	uint64_t length;
	send_all(c, "0\r\n\r\n", 5, &ignored);  /* errors are ignored: the server may have answered without reading the whole
	                                         * body */
	bool has_head = read_head(&h, &accepted, &chunked, &length);
	if (has_head && !accepted) {
		on_body = append_body;
		arg = &body;
	}
	if (has_head)
		complete = chunked ? read_chunks(&h, on_body, arg) : read_body(&h, length, on_body, arg);
	http_close(c);
	if (!has_head || (accepted && !complete))
		return error_set(err, STATUS_SYSTEM, NULL, "%s: the server closed the connection before a complete answer",
		                 c->service);
	refusal[strcspn(refusal, "\r\n")] = '\0';
	return accepted ? 0 : error_set(err, STATUS_SYSTEM, NULL, "%s: %s", c->service,
	                                text_escape(line, sizeof line,
	                                            *refusal ? refusal : "the server refused the request without a reason"));
}

int http_answer(struct http *c, char *body, size_t size, struct error *err)
{
	char none[1];
	struct http_body buffer = { body ? body : none, body ? size : sizeof none, 0 };
	buffer.text[0] = '\0';
	return http_read_answer(c, append_body, &buffer, err);
}

void http_close(struct http *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
