/* Live traces: lists a relay daemon's sessions, and defines the readers. */
#include "trace/live/live.h"

#include "base/base.h"
#include "trace/isolation/decoder_process.h"

#define SCHEME "net://"
#define URL_FORM "net://RELAY[:PORT]/host/HOSTNAME/SESSION"

bool trace_is_live(const char *url_text)
{
	return strncmp(url_text, SCHEME, sizeof SCHEME - 1) == 0;
}

/* Returns the text up to the next slash, malloc'ed (NULL: empty), and moves *at after that slash. */
static char *next_part(const char **at)
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
	char *relay = next_part(&at), *keyword = next_part(&at);
	*url = (struct live_url){ 0 };
	if (relay)
		url->relay = mem_printf(SCHEME "%s", relay);
	if (keyword) {
		url->host = next_part(&at);
		url->session = next_part(&at);
	}
	const bool is_valid = relay && is_relay(relay) && !*at && (!keyword || (strcmp(keyword, "host") == 0 && url->host));
	free(relay);
	free(keyword);
	if (is_valid)
		return 0;
	live_url_release(url);
	return error_set(err, STATUS_INPUT, "use " URL_FORM, "%s: not the URL of a live session", text);
}

void live_url_release(struct live_url *url)
{
	free(url->relay);
	free(url->host);
	free(url->session);
	*url = (struct live_url){ 0 };
}

static bool is_selected(const struct live_url *url, const struct ipc_session *s)
{
	return (!url->host || strcmp(url->host, s->host) == 0) &&
	       (!url->session || strcmp(url->session, s->name) == 0);
}

ORDER_BY(compare_host, struct live_session, RISING_TEXT(host) RISING_TEXT(name))

int trace_live_sessions(const char *url_text, struct live_session **list, size_t *n, struct error *err)
{
	struct live_url url;
	struct string_table names;
	size_t cap = 0;
	*list = NULL;
	*n = 0;
	if (live_url_parse(url_text, &url, err))
		return -1;
	string_table_init(&names);
	const struct trace_location location = { .reader = &live_lister, .path = (char *)url_text, .data = &url },
								*locations[] = { &location };
	struct source source = { .reader = &live_lister, .location = locations, .locations = 1, .mapping.names = &names };
	struct task task = { .source = &source }, *tasks[] = { &task };
	struct decoder_job decoder_job = { .source = &source, .task = tasks, .tasks = 1 }, *const jobs[] = { &decoder_job };
	int status = decoder_jobs_run(jobs, 1, &(struct decoder_run){ .max_children = 1 }, err);
	if (!status && source.truncation)
		status = error_set(err, STATUS_INPUT, live_lister.remedy, "%s: %s", url_text, source.truncation);
	for (size_t i = 0; i < decoder_job.sessions && !status; i++) {
		const struct ipc_session *s = &decoder_job.session[i];
		if (is_selected(&url, s))
			*ARRAY_PUSH(*list, *n, cap) = (struct live_session){ mem_dup(s->host), mem_dup(s->name),
				mem_printf("%s/host/%s/%s", url.relay, s->host, s->name), s->streams, s->viewers,
				(int64_t)(s->timer_us & UINT32_MAX) * 1000 };
	}
	ARRAY_SORT(*list, *n, compare_host);
	free(decoder_job.session);
	free(source.truncation);
	string_table_release(&names);
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

/* Appends a spec for each host: its only session, or all its sessions. */
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
		*spec = array_grow(*spec, &cap, *n, sizeof **spec);
		(*spec)[(*n)++] = (struct trace_spec){ .dir = lives == 1 ? mem_dup(live->url) :
			mem_printf("%s/host/%s", url->relay, live->host) };
	}
	trace_live_sessions_free(list, sessions);
	if (*n == before)
		return error_set(err, STATUS_INPUT, "on each machine: lttng create --live --set-url=net://RELAY",
		                 "%s: no live session", url->relay);
	return 0;
}

int live_discover(const char *url_text, struct trace_spec **spec, size_t *n, struct error *err)
{
	struct live_url url;
	if (live_url_parse(url_text, &url, err))
		return -1;
	int status = 0;
	if (url.host) {
		size_t cap = *n;
		*spec = array_grow(*spec, &cap, *n, sizeof **spec);
		(*spec)[(*n)++] = (struct trace_spec){ .dir = mem_dup(url_text) };
	} else {
		status = discover_relay(&url, spec, n, err);
	}
	live_url_release(&url);
	return status;
}

/* ---- the readers */

static enum claim live_claims(const char *name, const unsigned char *head, size_t len)
{
	(void)name;
	(void)head;
	(void)len;
	return CLAIM_NONE;
}

static int live_describe(struct trace_location *p, struct error *err)
{
	struct live_url *url = p->data = mem_new(1, sizeof *url);
	if (live_url_parse(p->path, url, err))
		return -1;
	if (!url->host)
		return error_set(err, STATUS_INPUT, "add /host/HOSTNAME", "%s: the URL contains no host", p->path);
	snprintf(p->meta.hostname, sizeof p->meta.hostname, "%s", url->host);
	return 0;
}

static void live_forget(struct trace_location *p)
{
	if (p->data)
		live_url_release(p->data);
	free(p->data);
}

static void live_add_notes(const struct source *s, const char *machine, struct notes *notes)
{
	if (s->truncation)
		note_add(notes, LIVE_TRUNCATED, machine, s->location[0]->path, s->truncation);
	if (s->user_stopped)
		note_add(notes, LIVE_STOPPED, machine);
}

#define CRASHED "libbabeltrace2 crashed on data of the relay daemon"
#define NO_ANSWER "the relay daemon does not answer"
#define REMEDY "see the output of lttng-relayd"

const struct trace_reader live_reader = {
	.name = "live", .isolated = true, .is_whole_machine = true, .endless = true, .uses_network = true, .silence_limit = 30,
	.crash_message = CRASHED, .silence_message = NO_ANSWER, .remedy = REMEDY, .unit = "packet",
	.claims = live_claims, .describe = live_describe, .forget = live_forget, .enter = live_enter,
	.decode = live_decode, .add_notes = live_add_notes,
};
const struct trace_reader live_lister = {
	.name = "sessions",
	.isolated = true,
	.uses_network = true,
	.silence_limit = 30,
	.crash_message = CRASHED,
	.silence_message = NO_ANSWER,
	.remedy = REMEDY,
	.enter = live_enter,
	.decode = live_list,
};
