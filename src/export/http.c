#include "export/http.h"

#include <curl/curl.h>

#include "base/dlopen_library.h"

#define CONNECT_S 30              /* s to connect, TLS included */
#define TIMEOUT_S 600             /* s to take a part of the body, and again s to answer after its end */
#define HEADERS_MAX 1000          /* lines of an answer's headers; an answer with more is refused */
#define ANSWER_MAX (256L << 20)   /* bytes of an answer's body; an answer with more is refused */
#define REFUSAL_SIZE 1024         /* bytes kept of the body of an answer with another status than 200 */

/* ---- URLs */

#define HOST_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:"

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
	       p->host[strspn(p->host, HOST_CHARACTERS)] == '\0' &&
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

#define CURL_CALLS(CALL) CALL(curl_, global_init) CALL(curl_, easy_init) CALL(curl_, easy_setopt) CALL(curl_, easy_pause) \
	CALL(curl_, easy_getinfo) CALL(curl_, easy_strerror) CALL(curl_, easy_cleanup) CALL(curl_, multi_init) \
	CALL(curl_, multi_add_handle) CALL(curl_, multi_remove_handle) CALL(curl_, multi_perform) CALL(curl_, multi_poll) \
	CALL(curl_, multi_info_read) CALL(curl_, multi_cleanup) CALL(curl_, slist_append) CALL(curl_, slist_free_all)
static struct { CURL_CALLS(LIBRARY_POINTER) } curl;
static const char *const curl_names[] = { CURL_CALLS(LIBRARY_NAME) NULL };

struct http {
	const char *service;
	const struct http_location *location;
	char *url;
	CURL *easy;
	CURLM *multi;
	struct curl_slist *headers;
	http_body_fn *on_body;
	void *arg;
	const char *bytes;      /* part of the request's body that is being sent */
	size_t pending;         /* its bytes that libcurl has not taken */
	bool has_all;           /* no further part follows */
	bool is_paused;         /* libcurl waits for the next part */
	bool is_connected;      /* libcurl has asked for the body */
	bool has_ended;         /* `result` is set */
	CURLcode result;
	size_t headers_len, body_bytes;  /* of the answer: lines, bytes */
	const char *excess;     /* why the answer was refused; NULL: it was not */
	size_t refusal_len;
	char refusal[REFUSAL_SIZE];
	char error[CURL_ERROR_SIZE];
};

static long answer_status(const struct http *c)
{
	long status = 0;
	curl.easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static size_t take_body(char *to, size_t size, size_t n, void *arg)
{
	struct http *c = arg;
	c->is_connected = true;
	if (!c->pending && !c->has_all) {
		c->is_paused = true;
		return CURL_READFUNC_PAUSE;
	}
	const size_t len = c->pending < size * n ? c->pending : size * n;
	if (len)
		memcpy(to, c->bytes, len);
	c->bytes += len;
	c->pending -= len;
	return len;
}

static size_t handle_header(char *line, size_t size, size_t n, void *arg)
{
	struct http *c = arg;
	(void)line;
	if (++c->headers_len <= HEADERS_MAX)
		return size * n;
	c->excess = "it has too many headers";
	return 0;
}

static size_t handle_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct http *c = arg;
	const size_t len = size * n, space = REFUSAL_SIZE - 1 - c->refusal_len;
	c->body_bytes += len;
	if (c->body_bytes > ANSWER_MAX) {
		c->excess = "it is too long";
		return 0;
	}
	if (answer_status(c) == 200) {
		if (c->on_body)
			c->on_body(c->arg, bytes, len);
	} else {
		memcpy(c->refusal + c->refusal_len, bytes, len < space ? len : space);
		c->refusal_len += len < space ? len : space;
	}
	return len;
}

/* Lets libcurl work until the part of the body is sent, if there is one, until the connection exists, if there is none, or
 * until the transfer has ended. */
enum http_goal { GOAL_CONNECTED, GOAL_SENT, GOAL_ENDED };
static bool is_reached(const struct http *c, enum http_goal goal)
{
	return c->has_ended || (goal == GOAL_CONNECTED ? c->is_connected : goal == GOAL_SENT && !c->pending);
}

static void end_transfer(struct http *c, CURLcode result)
{
	c->has_ended = true;
	c->result = result;
}

static void run_transfer(struct http *c, enum http_goal goal)
{
	const int64_t end = now_ns() + TIMEOUT_S * NS_PER_S;
	if (c->is_paused && goal != GOAL_CONNECTED && !c->has_ended) {
		c->is_paused = false;
		curl.easy_pause(c->easy, CURLPAUSE_CONT);
	}
	while (!is_reached(c, goal)) {
		int running, messages;
		const CURLMsg *m;
		if (curl.multi_perform(c->multi, &running) != CURLM_OK)
			end_transfer(c, CURLE_FAILED_INIT);
		while (!c->has_ended && (m = curl.multi_info_read(c->multi, &messages)))
			if (m->msg == CURLMSG_DONE)
				end_transfer(c, m->data.result);
		if (!is_reached(c, goal) && now_ns() > end)
			end_transfer(c, CURLE_OPERATION_TIMEDOUT);
		if (!is_reached(c, goal))
			curl.multi_poll(c->multi, NULL, 0, 1000, NULL);
	}
}

/* Returns 0 if the transfer was successful, or the server's refusal. */
static int report_result(const struct http *c, struct error *err)
{
	const char *why = c->excess ? c->excess : *c->error ? c->error : curl.easy_strerror(c->result);
	const char *host = c->location->host, *port = c->location->port;
	switch (c->result) {
	case CURLE_OK:
		break;
	case CURLE_COULDNT_RESOLVE_HOST:
		return error_set(err, STATUS_INPUT, NULL, "%s: %s", c->service, why);
	case CURLE_COULDNT_CONNECT:
		return error_set(err, STATUS_SYSTEM, "check that the server accepts HTTP on this port",
		                 "%s: cannot connect to %s:%s: %s", c->service, host, port, why);
	case CURLE_PEER_FAILED_VERIFICATION: case CURLE_SSL_CONNECT_ERROR: case CURLE_SSL_CACERT_BADFILE:
		return error_set(err, STATUS_SYSTEM, "SSL_CERT_FILE names a file with the certificates to trust",
		                 "%s: no TLS connection to %s:%s: %s", c->service, host, port, why);
	default:
		return error_set(err, STATUS_SYSTEM, NULL, "%s: no complete answer from the server: %s", c->service, why);
	}
	if (answer_status(c) == 200)
		return 0;
	const int line = (int)strcspn(c->refusal, "\r\n");
	return line ? error_set(err, STATUS_SYSTEM, NULL, "%s: %.*s", c->service, line < 256 ? line : 256, c->refusal)
	            : error_set(err, STATUS_SYSTEM, NULL, "%s: the server refused the request without a reason (status %ld)",
	                        c->service, answer_status(c));
}

static char *make_url(const struct http_location *l, const char *path)
{
	const bool is_ipv6 = strchr(l->host, ':') != NULL;
	return mem_printf("http%s://%s%s%s:%s%s", l->tls ? "s" : "", is_ipv6 ? "[" : "", l->host, is_ipv6 ? "]" : "", l->port,
	                  path);
}

static void set_options(struct http *c)
{
	static const struct { CURLoption option; long value; } numbers[] = {
		{ CURLOPT_POST, 1 }, { CURLOPT_CONNECTTIMEOUT, CONNECT_S }, { CURLOPT_FOLLOWLOCATION, 0 },
		{ CURLOPT_FORBID_REUSE, 1 }, { CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1 }, { CURLOPT_NOPROGRESS, 1 },
	};
	const char *trusted = getenv("SSL_CERT_FILE");
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		curl.easy_setopt(c->easy, numbers[i].option, numbers[i].value);
	/* This also refuses lengths beyond 64 bits. */
	curl.easy_setopt(c->easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)ANSWER_MAX);
	curl.easy_setopt(c->easy, CURLOPT_URL, c->url);
	curl.easy_setopt(c->easy, CURLOPT_PROXY, "");
	curl.easy_setopt(c->easy, CURLOPT_USERAGENT, "stealscope");
	curl.easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers);
	curl.easy_setopt(c->easy, CURLOPT_ERRORBUFFER, c->error);
	curl.easy_setopt(c->easy, CURLOPT_READFUNCTION, take_body);
	curl.easy_setopt(c->easy, CURLOPT_READDATA, c);
	curl.easy_setopt(c->easy, CURLOPT_HEADERFUNCTION, handle_header);
	curl.easy_setopt(c->easy, CURLOPT_HEADERDATA, c);
	curl.easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, handle_body);
	curl.easy_setopt(c->easy, CURLOPT_WRITEDATA, c);
	if (trusted && *trusted)
		curl.easy_setopt(c->easy, CURLOPT_CAINFO, trusted);
}

static bool add_headers(struct http *c, const char *const *header)
{
	static const char *const own[] = { "Transfer-Encoding: chunked", "Expect:", NULL };
	for (int i = 0; i < 2; i++) {
		for (const char *const *line = i ? own : header; line && *line; line++) {
			struct curl_slist *longer = curl.slist_append(c->headers, *line);
			if (!longer)
				return false;
			c->headers = longer;
		}
	}
	return true;
}

struct http *http_post(const char *service, const struct http_location *location, const char *path,
                       const char *const *header, http_body_fn *on_body, void *arg, struct error *err)
{
	if (library_load(CURL_FILE, "libcurl", curl_names, &curl, err))
		return NULL;
	struct http *c = mem_new(1, sizeof *c);
	*c = (struct http){ .service = service, .location = location, .on_body = on_body, .arg = arg };
	c->url = make_url(location, path);
	curl.global_init(CURL_GLOBAL_DEFAULT);
	c->easy = curl.easy_init();
	c->multi = curl.multi_init();
	if (!c->easy || !c->multi || !add_headers(c, header)) {
		error_set(err, STATUS_SYSTEM, NULL, "%s: libcurl cannot start a request", service);
		http_cancel(c);
		return NULL;
	}
	set_options(c);
	curl.multi_add_handle(c->multi, c->easy);
	run_transfer(c, GOAL_CONNECTED);
	if (c->has_ended && c->result != CURLE_OK && !answer_status(c)) {
		report_result(c, err);
		http_cancel(c);
		return NULL;
	}
	return c;
}

int http_send(struct http *c, const void *bytes, size_t n, struct error *err)
{
	c->bytes = bytes;
	c->pending = n;
	if (n)
		run_transfer(c, GOAL_SENT);
	return c->pending ? error_set(err, STATUS_SYSTEM, NULL, "%s: the server closed the connection", c->service) : 0;
}

int http_finish(struct http *c, struct error *err)
{
	c->pending = 0;
	c->has_all = true;
	run_transfer(c, GOAL_ENDED);
	const int rc = report_result(c, err);
	http_cancel(c);
	return rc;
}

void http_cancel(struct http *c)
{
	if (!c)
		return;
	if (c->multi && c->easy)
		curl.multi_remove_handle(c->multi, c->easy);
	if (c->easy)
		curl.easy_cleanup(c->easy);
	if (c->multi)
		curl.multi_cleanup(c->multi);
	curl.slist_free_all(c->headers);
	free(c->url);
	free(c);
}

void http_append_text(void *arg, const char *bytes, size_t n)
{
	struct http_text *t = arg;
	const size_t space = t->size - 1 - t->len;
	memcpy(t->text + t->len, bytes, n < space ? n : space);
	t->len += n < space ? n : space;
	t->text[t->len] = '\0';
}
