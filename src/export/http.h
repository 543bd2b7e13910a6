/* One POST to a server, its body streamed: plain HTTP/1.1 over a socket, as databases speak it on a trusted network or
 * through a tunnel.  Private to export/. */
#ifndef STEALSCOPE_EXPORT_HTTP_H
#define STEALSCOPE_EXPORT_HTTP_H

#include <stddef.h>

#include "base/error.h"

/* "//" USER[:PASSWORD]@HOST[:PORT]/DATABASE, each percent-decoded and without control characters. */
struct http_place {
	char *user, *password, *host, *port, *database;  /* "" when absent */
};
/* scheme: "clickhouse://", for messages, which tell nothing of the text.  Call http_place_release() in any case. */
int http_place_parse(struct http_place *p, const char *scheme, const char *text, const char *port, struct error *err);
void http_place_release(struct http_place *p);

struct http {
	int fd;                /* -1: none */
	const char *who;       /* for messages: "clickhouse" */
};

/* Connects, and sends the head of a POST.  path: percent-encoded; headers: lines that end in "\r\n", or "". */
int http_post(struct http *c, const char *who, const struct http_place *place, const char *path, const char *headers,
              struct error *err);
/* Sends a part of its body.  When the server has hung up, http_answer() says what it said before. */
int http_send(struct http *c, const void *bytes, size_t n, struct error *err);
/* Ends the body and hears the answer: 0 when it is 200, and whole; else -1, and *err has its first line.  Closes.  What an
 * answer of 200 says is given to take, part by part. */
typedef void http_take(void *arg, const char *bytes, size_t n);
int http_hear(struct http *c, http_take *take, void *arg, struct error *err);
/* The same; what it says is put into body (cut to its size, terminated), which may be NULL. */
int http_answer(struct http *c, char *body, size_t size, struct error *err);
void http_close(struct http *c);

/* "SELECT 1" -> "SELECT%201"; the caller frees. */
char *http_quote(const char *text);

#endif
