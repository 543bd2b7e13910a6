/* Sends spans to a collector: OTLP over HTTP, as JSON, one POST for each message. */
#include "base/base.h"
#include "base/json_field.h"
#include "export/http.h"
#include "export/otlp.h"

#define SERVICE "otlp"
#define HEADERS 16       /* largest number of headers in OTEL_EXPORTER_OTLP_HEADERS */
#define ANSWER 4096      /* bytes */
#define DEFAULT_PATH "v1/traces"

struct collector {
	struct http_location location;
	char *path;
	char *header[HEADERS + 2];   /* NULL-terminated */
	uint64_t sent;               /* message count */
};

/* Adds the headers of OTEL_EXPORTER_OTLP_HEADERS: "KEY=VALUE,KEY=VALUE", as in the specification of OpenTelemetry. */
static int add_headers(struct collector *c, struct error *err)
{
	const char *text = getenv("OTEL_EXPORTER_OTLP_HEADERS");
	size_t n = 0;
	c->header[n++] = mem_dup("Content-Type: application/json");
	for (const char *at = text ? text : ""; *at;) {
		const size_t size = strcspn(at, ","), key = strcspn(at, "=,");
		if (key == size || key == 0 || n > HEADERS || strcspn(at, "\r\n") < size)
			return error_set(err, STATUS_USAGE, "use KEY=VALUE,KEY=VALUE", "OTEL_EXPORTER_OTLP_HEADERS: malformed");
		c->header[n++] = mem_printf("%.*s: %.*s", (int)key, at, (int)(size - key - 1), at + key + 1);
		at += size + (at[size] == ',');
	}
	return 0;
}

/* Fails if the collector accepted only a part: {"partialSuccess": {"rejectedSpans": "N", "errorMessage": TEXT}}. */
static int check_answer(const char *text, size_t size, struct error *err)
{
	struct json_object *o = json_parse(text, size), *partial = NULL;
	int rc = 0;
	if (o && json_object_object_get_ex(o, "partialSuccess", &partial)) {
		struct json_object *rejected = NULL;
		json_object_object_get_ex(partial, "rejectedSpans", &rejected);
		if (rejected && json_object_get_int64(rejected) > 0)
			rc = error_set(err, STATUS_SYSTEM, NULL, SERVICE ": the collector rejected %lld spans: %.200s",
			               (long long)json_object_get_int64(rejected), json_member_text(partial, "errorMessage"));
	}
	json_object_put(o);
	return rc;
}

static int post(void *arg, const char *text, size_t size, struct error *err)
{
	struct collector *c = arg;
	char answer[ANSWER] = "";
	struct http_text body = { answer, sizeof answer, 0 };
	struct error ignored = ERROR_INIT;
	struct http *http = http_post(SERVICE, &c->location, c->path, (const char *const *)c->header, http_append_text, &body,
	                              err);
	if (!http)
		return -1;
	http_send(http, text, size, &ignored);
	if (http_finish(http, err) || check_answer(answer, strlen(answer), err))
		return -1;
	c->sent++;
	return 0;
}

static int send_all(const struct catalog *catalog, const struct export_spans *spans, int64_t run, const char *target,
                    bool tls, struct export_result *out, struct error *err)
{
	struct collector c = { .path = NULL };
	int rc = http_location_parse(&c.location, tls ? "otlp+https://" : "otlp+http://", target, "4318", err);
	c.location.tls = tls;
	if (rc == 0 && *c.location.user)
		rc = error_set(err, STATUS_USAGE, "set OTEL_EXPORTER_OTLP_HEADERS", SERVICE ": a URL with a user is not supported");
	if (rc == 0)
		rc = add_headers(&c, err);
	if (rc == 0) {
		const char *path = strchr(target, '/');
		c.path = mem_printf("/%s", path && path[1] ? path + 1 : DEFAULT_PATH);
		rc = otlp_make(catalog, spans, run, post, &c, out, err);
	}
	if (rc && c.sent)
		error_wrap(err, "%llu messages were sent before", (unsigned long long)c.sent);
	http_location_release(&c.location);
	for (size_t i = 0; i < HEADERS + 2; i++)
		free(c.header[i]);
	free(c.path);
	return rc;
}

int otlp_send(const struct catalog *catalog, const struct export_spans *spans, int64_t run, const char *target,
              struct export_result *out, struct error *err)
{
	return send_all(catalog, spans, run, target, false, out, err);
}

int otlp_send_tls(const struct catalog *catalog, const struct export_spans *spans, int64_t run, const char *target,
                  struct export_result *out, struct error *err)
{
	return send_all(catalog, spans, run, target, true, out, err);
}
