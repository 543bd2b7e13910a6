/* Minimal HTTP/1.1 client: one POST per connection, with a streamed body and without TLS, for databases on trusted
 * networks or through a tunnel. Private to export/. */
#ifndef STEALSCOPE_EXPORT_HTTP_H
#define STEALSCOPE_EXPORT_HTTP_H

#include <stddef.h>

#include "base/error.h"

/* Parts of "//USER[:PASSWORD]@HOST[:PORT]/DATABASE", percent-decoded and without control characters. */
struct http_location {
	char *user, *password, *host, *port, *database;  /* "": not given */
};
/* Parses text, the URL after the scheme. scheme: "clickhouse://", for errors, which do not contain the text. port:
 * default. Always call http_location_release(). */
int http_location_parse(struct http_location *p, const char *scheme, const char *text, const char *port, struct error *err);
void http_location_release(struct http_location *p);

struct http {
	int fd;                /* socket; -1: not connected */
	const char *service;   /* for messages: "clickhouse" */
};

/* Connects, and sends the head of a POST. path: percent-encoded; headers: lines that end in "\r ", or "". */
int http_post(struct http *c, const char *service, const struct http_location *location, const char *path,
              const char *headers, struct error *err);
/* Sends a part of the body. Returns -1 if the server has closed the connection; http_answer() then reports the server's
 * reason. */
int http_send(struct http *c, const void *bytes, size_t n, struct error *err);
/* Ends the request body, reads the answer and closes the connection. Passes the body of an answer with status 200 to
 * on_body() in parts. Returns 0 if the status is 200 and the body complete; otherwise -1 with the first line of the body
 * in *err. */
typedef void http_body_fn(void *arg, const char *bytes, size_t n);
int http_read_answer(struct http *c, http_body_fn *on_body, void *arg, struct error *err);
/* The same, but copies the body to `body`, truncated to `size` and NUL-terminated. body may be NULL. */
int http_answer(struct http *c, char *body, size_t size, struct error *err);
void http_close(struct http *c);

/* Percent-encodes a text: "SELECT 1" -> "SELECT%201". The caller frees. */
char *http_quote(const char *text);

#endif
