#include "cli/metrics_server.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define METRICS_CLIENTS 64    /* so many slow clients keep their places, and let others have time to send a request */
#define BACKLOG 128           /* connections that the kernel keeps for us */
#define ACCEPTS 64            /* most connections accepted at a time */
#define REQUEST_MAX 4096
#define CLIENT_NS (5 * NS_PER_S)  /* time in which a client must send its request and read the answer */

struct metrics_client {
	int fd;                /* -1: unused */
	int64_t deadline;
	char request[REQUEST_MAX];
	size_t received;
	char *answer;          /* NULL: the request is not complete */
	size_t len, sent;
};

struct metrics_server {
	int fd;
	bool is_local;         /* it listens on the loopback address */
	struct metrics_client client[METRICS_CLIENTS];
};

static bool is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
	return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

struct metrics_server *metrics_server_open(const char *address, struct error *err)
{
	const char *colon = strrchr(address, ':');
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV }, *info = NULL;
	const int on = 1;
	char *host = colon ? mem_printf("%.*s", (int)(colon - address), address) : NULL;
	if (!colon || !colon[1]) {
		free(host);
		error_set(err, STATUS_USAGE, "for example --listen 127.0.0.1:9796", "--listen: not ADDR:PORT: '%s'", address);
		return NULL;
	}
	const size_t n = strlen(host);
	if (n > 1 && host[0] == '[' && host[n - 1] == ']') {
		memmove(host, host + 1, n - 2);
		host[n - 2] = '\0';
	}
	const int rc = getaddrinfo(*host ? host : "127.0.0.1", colon + 1, &hints, &info);
	free(host);
	if (rc) {
		error_set(err, STATUS_USAGE, NULL, "--listen %s: %s", address, gai_strerror(rc));
		return NULL;
	}
	struct metrics_server *s = mem_new(1, sizeof *s);
	for (int i = 0; i < METRICS_CLIENTS; i++)
		s->client[i].fd = -1;
	s->fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd >= 0)
		setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (s->fd < 0 || bind(s->fd, info->ai_addr, info->ai_addrlen) || listen(s->fd, BACKLOG)) {
		error_system(err, "use another port", "--listen %s", address);
		freeaddrinfo(info);
		metrics_server_close(s);
		return NULL;
	}
	s->is_local = is_loopback(info->ai_addr);
	freeaddrinfo(info);
	return s;
}

static void client_close(struct metrics_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->answer);
	c->answer = NULL;
	c->fd = -1;
}

void metrics_server_close(struct metrics_server *s)
{
	if (!s)
		return;
	for (int i = 0; i < METRICS_CLIENTS; i++)
		client_close(&s->client[i]);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

/* Returns a place for a new client. If there is none, closes the connection that is open longest without a complete
 * request, so that silent and slow clients keep nobody out. */
static struct metrics_client *find_place(struct metrics_server *s)
{
	struct metrics_client *oldest = &s->client[0];
	for (int i = 0; i < METRICS_CLIENTS; i++) {
		struct metrics_client *c = &s->client[i];
		if (c->fd < 0)
			return c;
		if (!c->answer == !oldest->answer ? c->deadline < oldest->deadline : !c->answer)
			oldest = c;
	}
	client_close(oldest);
	return oldest;
}

/* Returns the value of the header Host, "": none. */
static const char *host_header(const char *request)
{
	for (const char *at = request; (at = strchr(at, '\n')) != NULL;)
		if (strncasecmp(++at, "host:", 5) == 0)
			return at + 5 + strspn(at + 5, " \t");
	return "";
}

/* On the loopback address, a browser on this machine may be made to ask for the page of a name that its owner lets point to
 * us (DNS rebinding). Such a request has the name as its Host. */
static bool is_foreign_host(const struct metrics_server *s, const char *request)
{
	static const char *const own[] = { "localhost", "127.", "[::1]", "\r", "\n" };
	const char *host = host_header(request);
	for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
		const size_t n = strlen(own[i]);
		const char *end = host + n + strspn(host + n, i == 1 ? "0123456789." : "");
		if (strncasecmp(host, own[i], n) == 0 && strchr(":\r\n", *end))
			return false;
	}
	return s->is_local && *host;
}

static void make_answer(const struct metrics_server *s, struct metrics_client *c, const struct live_metrics *m)
{
	static const char index[] = "<!DOCTYPE html>\n<title>stealscope monitor</title>\n<p>stealscope " PACKAGE_VERSION
		": <a href=\"/metrics\">metrics</a>, with values from the first period on, a second after the start.</p>\n";
	const char *type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
	size_t len = 0;
	char *body = NULL;
	char rest[REQUEST_MAX];
	const char *status = "404 Not Found";
	if (!strstr(c->request, "\n\r\n") && !strstr(c->request, "\n\n")) {
		status = "431 Request Header Fields Too Large";
		for (int i = 0; i < 64 && recv(c->fd, rest, sizeof rest, 0) > 0; i++)
			continue;  /* unread bytes would reset the connection before the answer arrives */
	} else if (strncmp(c->request, "GET ", 4) != 0) {
		status = "405 Method Not Allowed";
	} else if (is_foreign_host(s, c->request)) {
		status = "403 Forbidden";
	} else if (strncmp(c->request + 4, "/metrics ", 9) == 0 || strncmp(c->request + 4, "/metrics?", 9) == 0) {
		body = live_metrics_text(m, &len);
	} else if (strncmp(c->request + 4, "/ ", 2) == 0) {
		body = mem_dup(index);
		len = sizeof index - 1;
		type = "text/html; charset=utf-8";
	}
	if (body)
		c->answer = mem_printf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
		                       type, len, body);
	else
		c->answer = mem_printf("HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status);
	free(body);
	c->len = strlen(c->answer);
}

static void serve_client(const struct metrics_server *s, struct metrics_client *c, const struct live_metrics *m)
{
	if (!c->answer) {
		const ssize_t n = recv(c->fd, c->request + c->received, REQUEST_MAX - 1 - c->received, 0);
		if (n <= 0) {
			if (n == 0 || errno != EAGAIN)
				client_close(c);
			return;
		}
		c->received += (size_t)n;
		c->request[c->received] = '\0';
		if (c->received < REQUEST_MAX - 1 && !strstr(c->request, "\n\r\n") && !strstr(c->request, "\n\n"))
			return;
		make_answer(s, c, m);
	}
	const ssize_t n = send(c->fd, c->answer + c->sent, c->len - c->sent, MSG_NOSIGNAL);
	if (n > 0)
		c->sent += (size_t)n;
	if ((n < 0 && errno != EAGAIN) || c->sent == c->len)
		client_close(c);
}

/* Accepts connections, and serves each at once if its request is there. */
static void accept_clients(struct metrics_server *s, const struct live_metrics *m)
{
	for (int n = 0; n < ACCEPTS; n++) {
		const int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		struct metrics_client *c = find_place(s);
		c->fd = fd;
		c->deadline = now_ns() + CLIENT_NS;
		c->received = c->sent = 0;
		serve_client(s, c, m);
	}
}

void metrics_server_run(struct metrics_server *s, const struct live_metrics *m, int64_t until, const sigset_t *during,
                        int wake)
{
	for (int64_t now = now_ns(); now < until; now = now_ns()) {
		struct pollfd p[METRICS_CLIENTS + 2] = { { s->fd, POLLIN, 0 }, [METRICS_CLIENTS + 1] = { wake, POLLIN, 0 } };
		for (int i = 0; i < METRICS_CLIENTS; i++) {
			struct metrics_client *c = &s->client[i];
			if (c->fd >= 0 && now > c->deadline)
				client_close(c);
			p[i + 1] = (struct pollfd){ c->fd, c->answer ? POLLOUT : POLLIN, 0 };
		}
		const struct timespec wait = timespec_of(min64(until - now, NS_PER_S));
		if (ppoll(p, METRICS_CLIENTS + 2, &wait, during) < 0)
			return;
		for (int i = 0; i < METRICS_CLIENTS; i++)
			if (s->client[i].fd >= 0 && p[i + 1].revents)
				serve_client(s, &s->client[i], m);
		if (p[0].revents)
			accept_clients(s, m);
		if (p[METRICS_CLIENTS + 1].revents)
			return;
	}
}
