/* HTTP client, through libcurl: one POST per connection, with a streamed body. Follows no redirects, uses no proxy, and
 * bounds times and sizes. Private to export/.
 *
 *     struct http *c = http_post("clickhouse", &location, "/?query=...", headers, on_body, arg, err);
 *     if (c && http_send(c, bytes, n, &ignored) == 0) ...  a failure: http_finish() reports the reason
 *     if (c && http_finish(c, err)) ... */
#pragma once

#include "base/base.h"

/* Parts of "//USER[:PASSWORD]@HOST[:PORT]/DATABASE", percent-decoded and without control characters. */
struct http_location {
	char *user, *password, *host, *port, *database;  /* "": not given */
	bool tls;              /* https; set by the caller */
};
/* Parses text, the URL after the scheme. scheme: "clickhouse://", for errors, which do not contain the text. port:
 * default. Always call http_location_release(). */
int http_location_parse(struct http_location *p, const char *scheme, const char *text, const char *port, struct error *err);
void http_location_release(struct http_location *p);

struct http;  /* a request */
typedef void http_body_fn(void *arg, const char *bytes, size_t n);

/* Connects, and starts a POST. service: for messages, "clickhouse"; path: percent-encoded; header: lines up to NULL, or
 * NULL; on_body: gets the body of an answer with status 200 in parts, NULL: nothing does. `service`, `location` and `arg`
 * must outlive the request. Returns NULL with *err set if there is no connection. */
struct http *http_post(const char *service, const struct http_location *location, const char *path,
                       const char *const *header, http_body_fn *on_body, void *arg, struct error *err);
/* Sends a part of the body. Returns -1 if the server ends the request early; http_finish() then reports its reason. */
int http_send(struct http *c, const void *bytes, size_t n, struct error *err);
/* Ends the request's body, reads the answer and frees the request. Returns 0 if the status is 200 and the body complete;
 * otherwise -1 with the first line of the body in *err. */
int http_finish(struct http *c, struct error *err);
void http_cancel(struct http *c);  /* closes the connection and frees the request; NULL is allowed */

/* An http_body_fn that stores the body in a struct http_text, truncated to its size and terminated. */
struct http_text { char *text; size_t size, len; };
void http_append_text(void *arg, const char *bytes, size_t n);

/* Percent-encodes a text: "SELECT 1" -> "SELECT%201". The caller frees. */
char *http_quote(const char *text);
