/* Which sessions a relay daemon has. */
#include "trace/live/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/isolation/decoder_process.h"

#define SCHEME "net://"
#define FORM "net://RELAY[:PORT]/host/HOSTNAME/SESSION"

bool trace_is_live(const char *what)
{
	return strncmp(what, SCHEME, sizeof SCHEME - 1) == 0;
}

/* The text up to the next slash, moved behind it; NULL when it is empty. */
static char *part(const char **at)
{
	size_t len = strcspn(*at, "/");
	char *text = len ? mem_printf("%.*s", (int)len, *at) : NULL;
	*at += len + ((*at)[len] == '/');
	return text;
}

static bool is_relay(const char *text)
{
	const char *colon = strchr(text, ':');
	if (!colon)
		return true;
	char *end;
	const long port = strtol(colon + 1, &end, 10);
	return colon > text && colon[1] >= '0' && colon[1] <= '9' && !*end && port > 0 && port <= 65535;
}

int live_url_parse(const char *text, struct live_url *url, struct error *err)
{
	const char *at = text + sizeof SCHEME - 1;
	char *relay = part(&at), *word = part(&at);
	*url = (struct live_url){ 0 };
	if (relay)
		url->relay = mem_printf(SCHEME "%s", relay);
	if (word) {
		url->host = part(&at);
		url->session = part(&at);
	}
	const bool good = relay && is_relay(relay) && !*at && (!word || (strcmp(word, "host") == 0 && url->host));
	free(relay);
	free(word);
	if (good)
		return 0;
	live_url_release(url);
	return error_set(err, STATUS_INPUT, "give " FORM, "%s: not the URL of a live session", text);
}

void live_url_release(struct live_url *url)
{
	free(url->relay);
	free(url->host);
	free(url->session);
	*url = (struct live_url){ 0 };
}

static bool is_meant(const struct live_url *url, const struct tell_session *s)
{
	return (!url->host || strcmp(url->host, s->host) == 0) &&
	       (!url->session || strcmp(url->session, s->name) == 0);
}

static int by_host(const void *a, const void *b)
{
	const struct live_session *x = a, *y = b;
	int order = strcmp(x->host, y->host);
	return order ? order : strcmp(x->name, y->name);
}

int trace_live_sessions(const char *what, struct live_session **list, size_t *n, struct error *err)
{
	struct live_url url;
	struct names names;
	size_t cap = 0;
	*list = NULL;
	*n = 0;
	if (live_url_parse(what, &url, err))
		return -1;
	names_init(&names);
	const struct place place = { .reader = &live_lister, .path = (char *)what, .data = &url }, *places[] = { &place };
	struct source source = { .reader = &live_lister, .place = places, .places = 1, .meaning.names = &names };
	struct task task = { .source = &source }, *tasks[] = { &task };
	struct told told = { .source = &source, .task = tasks, .tasks = 1 }, *const all[] = { &told };
	int status = told_read(all, 1, &(struct told_work){ .most = 1 }, err);
	if (!status && source.cut)
		status = error_set(err, STATUS_INPUT, live_lister.mend, "%s: %s", what, source.cut);
	for (size_t i = 0; i < told.sessions && !status; i++) {
		const struct tell_session *s = &told.session[i];
		if (is_meant(&url, s))
			*ARRAY_PUSH(*list, *n, cap) = (struct live_session){ mem_dup(s->host), mem_dup(s->name),
				mem_printf("%s/host/%s/%s", url.relay, s->host, s->name), s->streams, s->viewers,
				(int64_t)(s->timer_us & UINT32_MAX) * 1000 };
	}
	if (*n)
		qsort(*list, *n, sizeof **list, by_host);
	free(told.session);
	free(source.cut);
	names_release(&names);
	live_url_release(&url);
	return status;
}

void trace_live_sessions_free(struct live_session *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].host);
		free(list[i].name);
		free(list[i].url);
	}
	free(list);
}

/* A spec for each host: its session, or all of them. */
static int discover_relay(const struct live_url *url, struct trace_spec **spec, size_t *n, struct error *err)
{
	struct live_session *list;
	size_t sessions, cap = *n;
	if (trace_live_sessions(url->relay, &list, &sessions, err))
		return -1;
	const size_t before = *n;
	for (size_t i = 0, next; i < sessions; i = next) {
		const struct live_session *live = NULL;
		size_t lives = 0;
		for (next = i; next < sessions && strcmp(list[next].host, list[i].host) == 0; next++) {
			if (!list[next].timer)
				continue;
			live = &list[next];
			lives++;
		}
		if (!lives)
			continue;
		*spec = mem_room(*spec, &cap, *n, sizeof **spec);
		(*spec)[(*n)++] = (struct trace_spec){ .dir = lives == 1 ? mem_dup(live->url) :
			mem_printf("%s/host/%s", url->relay, live->host) };
	}
	trace_live_sessions_free(list, sessions);
	if (*n == before)
		return error_set(err, STATUS_INPUT, "on each machine: lttng create --live --set-url=net://RELAY",
		                 "%s: no live session", url->relay);
	return 0;
}

int live_discover(const char *what, struct trace_spec **spec, size_t *n, struct error *err)
{
	struct live_url url;
	if (live_url_parse(what, &url, err))
		return -1;
	int status = 0;
	if (url.host) {
		size_t cap = *n;
		*spec = mem_room(*spec, &cap, *n, sizeof **spec);
		(*spec)[(*n)++] = (struct trace_spec){ .dir = mem_dup(what) };
	} else {
		status = discover_relay(&url, spec, n, err);
	}
	live_url_release(&url);
	return status;
}

/* ---- the readers */

static enum claim claims(const char *name, const unsigned char *head, size_t len)
{
	(void)name;
	(void)head;
	(void)len;
	return CLAIM_NONE;
}

static int describe(struct place *p, struct error *err)
{
	struct live_url *url = p->data = mem_new(1, sizeof *url);
	if (live_url_parse(p->path, url, err))
		return -1;
	if (!url->host)
		return error_set(err, STATUS_INPUT, "add /host/HOSTNAME", "%s: names no machine", p->path);
	snprintf(p->meta.hostname, sizeof p->meta.hostname, "%s", url->host);
	return 0;
}

static void forget(struct place *p)
{
	if (p->data)
		live_url_release(p->data);
	free(p->data);
}

static void remark(const struct source *s, const char *machine, struct notes *notes)
{
	if (s->cut)
		notes_add(notes, NOTE_DAMAGE, machine, "%s: %s; what was recorded later is missing", s->place[0]->path, s->cut);
	if (s->stopped)
		notes_add(notes, NOTE_FACT, machine,
		          "reading was stopped while it was still recorded; the history ends with what had arrived");
}

#define DIED "libbabeltrace2 does not survive what the relay daemon sends"
#define SILENT "the relay daemon does not answer"
#define MEND "look at what lttng-relayd says"

const struct trace_reader live_reader = {
	.name = "live", .apart = true, .alone = true, .endless = true, .online = true, .patience = 30,
	.died = DIED, .silent = SILENT, .mend = MEND, .unit = "packet",
	.claims = claims, .describe = describe, .forget = forget, .enter = live_enter,
	.decode = live_decode, .remark = remark,
};
const struct trace_reader live_lister = {
	.name = "sessions", .apart = true, .online = true, .patience = 30, .died = DIED, .silent = SILENT, .mend = MEND,
	.enter = live_enter, .decode = live_list,
};
