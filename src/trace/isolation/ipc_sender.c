/* The child's half: an outlet that tells what is put into it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/clock.h"
#include "trace/isolation/decoder_process.h"

#define FEW 128             /* events of one of many streams that are told at once */
#define PAUSE 20000000      /* ns: what waits longer is told when outlet_at() is called */

struct batch {
	struct event *ev;
	size_t used;
	uint64_t order;
};

struct teller {
	struct outlet outlet;
	int fd;
	struct names names;
	size_t told;              /* names that the parent knows */
	struct meaning *meaning;
	size_t layout_told;
	struct faults faults_told;
	struct batch batch[TELL_STREAMS];
	size_t batches, most;     /* most: events in a batch */
	uint32_t current;
	uint32_t stream_told;     /* the one that the parent takes events for */
	int64_t told_at;          /* ns: when all was */
	struct error err;
};

static struct teller *teller_of(struct outlet *o)
{
	return (struct teller *)o;  /* its first member */
}

void tell_bytes(int fd, const void *data, size_t len)
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

static void tell(const struct teller *t, enum tell what, const void *data, size_t len)
{
	const struct tell_head head = { what, (uint32_t)len };
	tell_bytes(t->fd, &head, sizeof head);
	tell_bytes(t->fd, data, len);
}

static void tell_text(const struct teller *t, enum tell what, const char *text)
{
	tell(t, what, text, strnlen(text, TELL_LONGEST));
}

/* ---- what waits */

static void tell_stream(struct teller *t, uint32_t number)
{
	const struct tell_stream s = { .number = number, .order = t->batch[number].order };
	if (number == t->stream_told)
		return;
	tell(t, TELL_STREAM, &s, sizeof s);
	t->stream_told = number;
}

/* Names first: events mean nothing without them. */
static void flush(struct teller *t, uint32_t number)
{
	struct batch *b = &t->batch[number];
	if (!b->used)
		return;
	for (; t->told + 1 < t->names.tab.len; t->told++)
		tell_text(t, TELL_NAME, strtab_get(&t->names.tab, (uint32_t)t->told + 1));
	tell_stream(t, number);
	tell(t, TELL_EVENTS, b->ev, b->used * sizeof *b->ev);
	b->used = 0;
}

static void flush_all(struct teller *t)
{
	const uint32_t chosen = (uint32_t)atomic_load(&t->meaning->chosen);
	const struct tell_layout layout = { chosen, atomic_load(&t->meaning->asked) };
	for (uint32_t i = 0; i < t->batches; i++)
		flush(t, i);
	if (memcmp(&t->faults_told, &t->outlet.faults, sizeof t->faults_told) != 0)
		tell(t, TELL_FAULTS, &t->outlet.faults, sizeof t->outlet.faults);
	if (chosen && chosen != t->layout_told)
		tell(t, TELL_LAYOUT, &layout, sizeof layout);
	t->faults_told = t->outlet.faults;
	t->layout_told = chosen;
}

/* ---- the outlet */

static int put(struct outlet *o, const struct event *ev)
{
	struct teller *t = teller_of(o);
	struct batch *b = &t->batch[t->current];
	if (!b->ev)
		b->ev = mem_new(t->most, sizeof *b->ev);
	b->ev[b->used++] = *ev;
	if (b->used == t->most)
		flush(t, t->current);
	return 0;
}

static int stream(struct outlet *o, uint32_t number, uint64_t order)
{
	struct teller *t = teller_of(o);
	if (number >= TELL_STREAMS)
		return error_set(o->err, STATUS_INPUT, NULL, "it has more than %d streams", TELL_STREAMS);
	t->current = number;
	if (number >= t->batches) {
		t->batches = number + 1U;
		t->batch[number].order = order;
		tell_stream(t, number);
	}
	return 0;
}

static int covers(struct outlet *o, uint16_t cpu, int64_t begin, int64_t end)
{
	const struct tell_coverage c = { cpu, begin, end };
	tell_stream(teller_of(o), teller_of(o)->current);
	tell(teller_of(o), TELL_COVERS, &c, sizeof c);
	return 0;
}

static int damaged(struct outlet *o, const char *why, bool goes_on)
{
	struct teller *t = teller_of(o);
	flush(t, t->current);
	tell_stream(t, t->current);
	tell_text(t, goes_on ? TELL_SKIPPED : TELL_DAMAGED, why);
	return 0;
}

static int at(struct outlet *o, uint64_t bytes)
{
	struct teller *t = teller_of(o);
	const int64_t ns = now_ns();
	if (ns - t->told_at < PAUSE)
		return 0;
	flush_all(t);
	tell(t, TELL_AT, &bytes, sizeof bytes);
	t->told_at = ns;
	return 0;
}

static const struct outlet_ops ops = { .put = put, .stream = stream, .covers = covers, .damaged = damaged, .at = at };

void tell_trace(struct outlet *o, const struct metadata *m)
{
	tell(teller_of(o), TELL_TRACE, m, sizeof *m);
}

void tell_session(struct outlet *o, const struct tell_session *s)
{
	tell(teller_of(o), TELL_SESSION, s, sizeof *s);
}

void tell_cut(struct outlet *o, const char *why)
{
	flush_all(teller_of(o));
	tell_text(teller_of(o), TELL_CUT, why);
}

/* ---- last words */

bool tell_is_io(int why)
{
	return why == EIO || why == ESTALE || why == EREMOTEIO || why == ETIMEDOUT || why == EMFILE || why == ENFILE;
}

static struct {
	int fd;
	struct tell_head head;
	struct tell_refusal refusal;
} last_words;

/* Libraries crash on what they could not read, too. */
static void on_fatal(int sig)
{
	(void)sig;
	if (tell_is_io(errno) && write(last_words.fd, &last_words.head, sizeof last_words.head) > 0 &&
	    write(last_words.fd, &last_words.refusal, sizeof last_words.refusal) > 0)
		_exit(1);
	_exit(2);
}

static void prepare_last_words(int fd, const char *name)
{
	static const int fatal[] = { SIGSEGV, SIGFPE, SIGILL, SIGABRT };
	const struct sigaction sa = { .sa_handler = on_fatal };
	last_words.fd = fd;
	last_words.head = (struct tell_head){ TELL_REFUSE, sizeof last_words.refusal };
	last_words.refusal.status = STATUS_SYSTEM;
	snprintf(last_words.refusal.text, sizeof last_words.refusal.text, "%s: the system could not read it", name);
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		sigaction(fatal[i], &sa, NULL);
}

/* ---- all of it */

static void refuse(const struct teller *t)
{
	struct tell_refusal r = { .status = t->err.status };
	snprintf(r.text, sizeof r.text, "%s", t->err.text);
	snprintf(r.mend, sizeof r.mend, "%s", t->err.mend);
	tell(t, TELL_REFUSE, &r, sizeof r);
}

void tell_all(const struct told *told, size_t first, int fd)
{
	struct source *s = told->source;
	struct teller *t = mem_new(1, sizeof *t);
	*t = (struct teller){ .outlet = { .ops = &ops, .only = s->only, .err = &t->err }, .fd = fd, .meaning = &s->meaning,
		.most = s->streams ? TELL_BATCH : FEW, .batches = s->streams > 0,
		.stream_told = s->streams ? 0 : TELL_STREAMS };
	names_init_child(&t->names);
	t->names.of_events = s->only != NULL;
	prepare_last_words(fd, s->place[0]->path);
	s->meaning.names = &t->names;
	void *entered = s->reader->enter(s, &t->err);
	int status = entered ? 0 : -1;
	for (size_t i = first; i < told->tasks && !status; i++) {
		const uint32_t number = (uint32_t)i;
		tell(t, TELL_STRETCH, &number, sizeof number);
		t->outlet.faults = t->faults_told = (struct faults){ 0 };
		status = s->reader->decode(entered, &told->task[i]->stretch, &t->outlet);
		flush_all(t);
		if (status == DECODE_WHOLE) {
			tell(t, TELL_WHOLE, NULL, 0);
			status = 0;
		}
	}
	if (status)
		refuse(t);
	tell(t, TELL_END, NULL, 0);
}
