/* Shares the counters of a VM's vCPUs with the VM, through a file that backs a memory device of the VM (`monitor --share`;
 * layout: base/published_page.h).
 *
 * The VM can write to this memory, so nothing is read from it. Writes go through pwrite(2): a file that somebody truncates
 * causes no signal. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "live/live.h"
#include "live/victims.h"

#define SOURCE_SHARED 3       /* SRBN_SOURCE_SHARED of beacon/stealscope-mark.h */
#define VCPUS (PUBLISHED_ENTRIES - 1)

struct share {
	char machine[LIVE_NAME];
	int fd;
	u64 session;
	int64_t updated, longest;  /* last update; longest time between two updates in this period, ns */
	int64_t resolution;        /* the same of the last period */
	u32 seq;                   /* of all entries; even */
	int32_t tid[VCPUS];        /* each vCPU's host thread; 0: none */
};

struct share *share_open(const char *spec, struct error *err)
{
	const char *equals = strchr(spec, '=');
	struct stat st;
	if (!equals || equals == spec || !equals[1] || equals - spec >= LIVE_NAME) {
		error_set(err, STATUS_USAGE, "for example web=/dev/shm/web", "--share: not VM=FILE: '%s'", spec);
		return NULL;
	}
	struct share *s = mem_new(1, sizeof *s);
	memcpy(s->machine, spec, (size_t)(equals - spec));
	s->session = (u64)clock_ns(CLOCK_REALTIME) << 8;
	/* Kernels may refuse O_CREAT for a file of another user in /dev/shm: it is created only if it does not exist. */
	s->fd = open(equals + 1, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (s->fd < 0 && errno == ENOENT)
		s->fd = open(equals + 1, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->fd < 0 || fstat(s->fd, &st)) {
		error_system(err, NULL, "--share %s", spec);
		share_close(s);
		return NULL;
	}
	if (!S_ISREG(st.st_mode) || (st.st_size > 0 && st.st_size < (off_t)SHARED_BYTES)) {
		error_set(err, STATUS_INPUT, "use the mem-path of the memory device", "--share %s: not a file of at least %u bytes",
		          spec, SHARED_BYTES);
		share_close(s);
		return NULL;
	}
	if (st.st_mode & S_IRWXO) {
		error_set(err, STATUS_INPUT, "chmod o= FILE", "--share %s: every user may open this file", spec);
		share_close(s);
		return NULL;
	}
	if (st.st_size == 0 && ftruncate(s->fd, SHARED_BYTES)) {
		error_system(err, NULL, "--share %s", spec);
		share_close(s);
		return NULL;
	}
	return s;
}

/* A write that fails is repeated by the next update. */
static void put(const struct share *s, const void *data, size_t size, size_t at)
{
	if (pwrite(s->fd, data, size, (off_t)at) < 0 && errno == EBADF)
		abort();
}

/* Writes an entry of 128 bytes that begins with its sequence number. */
static void put_entry(const struct share *s, void *entry, size_t at)
{
	u32 *seq = entry;
	*seq = s->seq + 1;
	put(s, seq, sizeof *seq, at);
	put(s, seq + 1, PUBLISHED_ENTRY_BYTES - sizeof *seq, at + sizeof *seq);
	*seq = s->seq + 2;
	put(s, seq, sizeof *seq, at);
}

static void put_header(const struct share *s, u32 closed)
{
	const struct published_header h = {
		.magic = PUBLISHED_MAGIC, .version = PUBLISHED_VERSION, .source = SOURCE_SHARED, .closed = closed,
		.session = s->session, .beat = (u64)s->updated, .resolution = (u64)max64(s->resolution, s->longest) };
	put(s, &h, sizeof h, 0);
}

/* Index of a thread's vCPU if it belongs to the VM; -1: no. */
static int vcpu_of(const struct share *s, const struct live_thread *t)
{
	return t->slot >= 0 && t->number >= 0 && t->number < (int)VCPUS && strcmp(t->machine, s->machine) == 0 ? t->number : -1;
}

void share_update(struct share *s, struct live *l)
{
	const struct live_threads *threads = live_threads_of(l);
	const int64_t now = now_ns();
	if (s->updated)
		s->longest = max64(s->longest, now - s->updated);
	s->updated = now;
	for (size_t i = 0; i < threads->len; i++) {
		const struct live_thread *t = &threads->thread[i];
		const int n = vcpu_of(s, t);
		if (n < 0)
			continue;
		if (s->tid[n] != t->tid)
			s->session++;  /* the VM was started again: its counters begin anew */
		s->tid[n] = t->tid;
		const struct live_victim v = live_victim_at(l, t->slot, now);
		struct published_thread e = { .tid = (u32)n + 1, .updated = (u64)now };
		e.counter[PUBLISHED_STOLEN] = v.ns[LIVE_WAITING] + v.ns[LIVE_THROTTLED];
		e.counter[PUBLISHED_THROTTLED] = v.ns[LIVE_THROTTLED];
		e.counter[PUBLISHED_BLOCKED] = v.ns[LIVE_BLOCKED] + v.ns[LIVE_PAUSED];
		e.counter[PUBLISHED_UNKNOWN] = v.ns[LIVE_UNKNOWN];
		e.counter[PUBLISHED_SWITCHES] = v.waits;
		put_entry(s, &e, (size_t)(1 + n) * PUBLISHED_ENTRY_BYTES);
	}
	s->seq += 2;
	put_header(s, 0);
}

void share_culprits(struct share *s, const struct live_sample *sample)
{
	for (size_t i = 0; i < sample->vcpus; i++) {
		const struct live_vcpu *v = &sample->vcpu[i];
		if (v->number < 0 || v->number >= (int)VCPUS || strcmp(v->machine, s->machine) != 0)
			continue;
		struct shared_culprit c = { .took = v->top >= 0 ? (u64)v->top_ns : 0 };
		if (v->top >= 0)
			text_cut(c.name, sizeof c.name, sample->culprit[v->top].name);
		put_entry(s, &c, PUBLISHED_BYTES + (size_t)(1 + v->number) * PUBLISHED_ENTRY_BYTES);
	}
	s->resolution = s->longest;
	s->longest = 0;
}

void share_close(struct share *s)
{
	if (s && s->fd >= 0 && s->updated)
		put_header(s, 1);
	if (s && s->fd >= 0)
		close(s->fd);
	free(s);
}
