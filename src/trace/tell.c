/* The child's half: how it tells what it decodes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace/told.h"

static void put_bytes(int fd, const void *data, size_t len)
{
	const char *at = data;
	while (len) {
		ssize_t n = write(fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);  /* nobody listens any more */
		at += n;
		len -= (size_t)n;
	}
}

void tell(const struct teller *t, enum tell what, const void *data, size_t len)
{
	const struct tell_head head = { what, (uint32_t)len };
	put_bytes(t->fd, &head, sizeof head);
	put_bytes(t->fd, data, len);
}

void tell_text(const struct teller *t, enum tell what, const char *text)
{
	tell(t, what, text, strnlen(text, TELL_LONGEST));
}

void tell_refuse(const struct teller *t, const char *mend, const char *why)
{
	struct tell_refusal r = { { 0 }, { 0 } };
	snprintf(r.why, sizeof r.why, "%s", why);
	snprintf(r.mend, sizeof r.mend, "%s", mend);
	tell(t, TELL_REFUSE, &r, sizeof r);
}

void tell_events(struct teller *t, const struct event *ev, size_t n)
{
	for (; t->told + 1 < t->names.tab.len; t->told++)
		tell_text(t, TELL_NAME, strtab_get(&t->names.tab, (uint32_t)t->told + 1));
	for (size_t part; n; ev += part, n -= part) {
		part = n < TELL_BATCH ? n : TELL_BATCH;
		tell(t, TELL_EVENTS, ev, part * sizeof *ev);
	}
}
