#include "report/place_link.h"

#include <unistd.h>

#define SCHEME "stealscope://"
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/"
#define HOST_BYTES 256

static void put_encoded(FILE *f, const char *text)
{
	for (; *text; text++)
		fprintf(f, strchr(PLAIN, *text) ? "%c" : "%%%02X", (unsigned char)*text);
}

char *place_link_make(const char *file, const char *row, const char *at)
{
	char host[HOST_BYTES] = "", *text, *path = realpath(file, NULL);
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		abort();
	gethostname(host, sizeof host - 1);
	fputs(SCHEME, f);
	put_encoded(f, host);
	put_encoded(f, path ? path : "/");
	fputs("?row=", f);
	put_encoded(f, row);
	fputs("&at=", f);
	put_encoded(f, at);
	fclose(f);
	free(path);
	return text;
}

void place_link_print(FILE *out, const char *link, const char *text)
{
	const bool is_link = link && *link;
	fprintf(out, "%s%s%s%s%s", is_link ? "\033]8;;" : "", is_link ? link : "", is_link ? "\033\\" : "", text,
	        is_link ? "\033]8;;\033\\" : "");
}

/* Decodes `bytes` of a text. Returns NULL if they are no encoding of a text. */
static char *decode(const char *text, size_t bytes)
{
	char *out = mem_new(bytes + 1, 1), *to = out;
	for (size_t i = 0; i < bytes; i++) {
		unsigned c = (unsigned char)text[i];
		int used = 0;
		if (c == '%' && (i + 2 >= bytes || sscanf(text + i + 1, "%2x%n", &c, &used) != 1 || used != 2 || !c)) {
			free(out);
			return NULL;
		}
		i += (size_t)used;
		*to++ = (char)c;
	}
	return out;
}

int place_link_parse(const char *text, struct place_link *out, struct error *err)
{
	char host[HOST_BYTES] = "";
	*out = (struct place_link){ NULL, NULL, NULL };
	if (strncmp(text, SCHEME, sizeof SCHEME - 1) != 0)
		return 0;
	text += sizeof SCHEME - 1;
	const size_t host_bytes = strcspn(text, "/?"), bytes = host_bytes + strcspn(text + host_bytes, "?");
	char *named = decode(text, host_bytes);
	out->path = decode(text + host_bytes, bytes - host_bytes);
	for (const char *at = text + bytes; *at; at += strcspn(at + 1, "&") + 1) {
		char **part = strncmp(at + 1, "row=", 4) == 0 ? &out->row : strncmp(at + 1, "at=", 3) == 0 ? &out->at : NULL;
		const char *value = at + 1 + strcspn(at + 1, "=&");
		if (part && !*part && *value == '=')
			*part = decode(value + 1, strcspn(value + 1, "&"));
	}
	gethostname(host, sizeof host - 1);
	int rc = 1;
	if (!named || !out->path || *out->path != '/')
		rc = error_set(err, STATUS_USAGE, NULL, "damaged link: %.200s", text);
	else if (*named && strcmp(named, host) != 0)
		rc = error_set(err, STATUS_USAGE, "open it there", "%s: this recording is on %.200s", out->path, named);
	free(named);
	if (rc < 0)
		place_link_release(out);
	return rc;
}

void place_link_release(struct place_link *l)
{
	free(l->path);
	free(l->row);
	free(l->at);
	*l = (struct place_link){ NULL, NULL, NULL };
}
