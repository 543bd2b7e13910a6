/* Loading: all machines' traces, decoded by a few threads, each stream once.
 *
 * First every CTF trace is opened (a graph each, in parallel), which tells its streams.  Then the threads take streams,
 * largest trace first; a thread that needs a graph of a trace takes an idle one or opens another. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "trace/decoder.h"
#include "trace/internal.h"

#define MEMORY_DEFAULT ((size_t)96 << 20)
#define MOST_WORKERS 64

struct task {
	size_t group, port;
	uint64_t bytes;  /* about */
	struct decoded out;
	struct error err;
	int status;
	bool ran;
};

/* One CTF trace of one machine, and the graphs over it that no thread uses. */
struct group {
	size_t machine;
	const struct ctf_dir *first_dir;
	struct ctf ctf;
	uint64_t bytes;
	size_t ports, first_task;
	char **port_name;
	struct decoder **idle;
	size_t idles, idles_cap;
	struct error err;
	int status;
};

struct machine {
	const struct trace_spec *spec;
	struct trace *trace;
	struct layout **layout;
	size_t layouts;
	struct ctf_dir *dir;
	size_t dirs;
};

struct load {
	const struct trace_options *options;
	struct machine *machine;
	size_t machines;
	struct group *group;
	size_t groups, groups_cap;
	struct task *task;
	size_t *order;  /* of the tasks, largest first */
	size_t tasks;
	struct store *store;
	pthread_mutex_t lock;
	size_t next;    /* the next group to open, then the next in order to run */
	unsigned workers, running;
	pthread_cond_t done;
	_Atomic uint64_t events;
	uint64_t bytes, bytes_done;  /* under lock */
	atomic_bool cancelled;
	atomic_bool failed;
};

/* ---- work of the threads */

static bool take_next(struct load *l, size_t limit, size_t *i)
{
	pthread_mutex_lock(&l->lock);
	bool more = l->next < limit && !atomic_load(&l->cancelled) && !atomic_load(&l->failed);
	if (more)
		*i = l->next++;
	pthread_mutex_unlock(&l->lock);
	return more;
}

static void finish_thread(struct load *l)
{
	pthread_mutex_lock(&l->lock);
	l->running--;
	pthread_cond_signal(&l->done);
	pthread_mutex_unlock(&l->lock);
}

static void put_idle(struct load *l, struct group *g, struct decoder *d)
{
	pthread_mutex_lock(&l->lock);
	*ARRAY_PUSH(g->idle, g->idles, g->idles_cap) = d;
	pthread_mutex_unlock(&l->lock);
}

static struct decoder *get_decoder(struct load *l, struct group *g, struct error *err)
{
	struct decoder *d = NULL;
	pthread_mutex_lock(&l->lock);
	if (g->idles)
		d = g->idle[--g->idles];
	pthread_mutex_unlock(&l->lock);
	return d ? d : decoder_open(&g->ctf, err);
}

static void *open_thread(void *arg)
{
	struct load *l = arg;
	for (size_t i; take_next(l, l->groups, &i);) {
		struct group *g = &l->group[i];
		struct decoder *d = decoder_open(&g->ctf, &g->err);
		if (!d) {
			g->status = -1;
			continue;
		}
		g->ports = decoder_ports(d);
		g->port_name = mem_new(g->ports + 1, sizeof *g->port_name);
		for (size_t p = 0; p < g->ports; p++)
			g->port_name[p] = mem_dup(decoder_port_name(d, p));
		put_idle(l, g, d);
	}
	finish_thread(l);
	return NULL;
}

static void *decode_thread(void *arg)
{
	struct load *l = arg;
	for (size_t i; take_next(l, l->tasks, &i);) {
		struct task *t = &l->task[l->order[i]];
		struct group *g = &l->group[t->group];
		struct decoder *d = get_decoder(l, g, &t->err);
		t->status = -1;
		if (d) {
			t->ran = true;
			t->status = decoder_run(d, t->port, l->store, &l->events, &l->cancelled, &t->out, &t->err);
			put_idle(l, g, d);
		}
		if (t->status)
			atomic_store(&l->failed, true);
		pthread_mutex_lock(&l->lock);
		l->bytes_done += t->bytes;
		pthread_mutex_unlock(&l->lock);
	}
	finish_thread(l);
	return NULL;
}

/* ---- the thread that started them */

static void tick(struct load *l, uint64_t done)
{
	const struct progress *p = &l->options->progress;
	if (p->tick && p->tick(p->arg, "reading traces", done, l->bytes))
		atomic_store(&l->cancelled, true);
}

static void wait_for_threads(struct load *l)
{
	pthread_mutex_lock(&l->lock);
	while (l->running) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 20000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&l->done, &l->lock, &until);
		uint64_t done = l->bytes_done;
		pthread_mutex_unlock(&l->lock);
		tick(l, done);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
}

static int run_threads(struct load *l, void *(*work)(void *), size_t tasks, struct error *err)
{
	pthread_t thread[MOST_WORKERS];
	unsigned n = l->workers < tasks ? l->workers : (unsigned)tasks, started = 0;
	l->next = 0;
	l->running = n;
	while (started < n && pthread_create(&thread[started], NULL, work, l) == 0)
		started++;
	if (started < n) {
		pthread_mutex_lock(&l->lock);
		l->running -= n - started;
		pthread_mutex_unlock(&l->lock);
	}
	if (n && !started)
		return error_set(err, STATUS_SYSTEM, NULL, "reading traces: cannot start a thread");
	wait_for_threads(l);
	for (unsigned i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	if (atomic_load(&l->cancelled))
		return error_set(err, STATUS_CANCELLED, NULL, "reading traces: interrupted");
	return 0;
}

/* ---- machines */

static int load_layouts(struct machine *m, struct error *err)
{
	size_t cap = 0;
	for (size_t i = 0; m->spec->layout ? i == 0 : layout_shipped(i) != NULL; i++) {
		struct layout *l = layout_load(m->spec->layout ? m->spec->layout : layout_shipped(i), err);
		if (!l)
			return -1;
		*ARRAY_PUSH(m->layout, m->layouts, cap) = l;
	}
	return 0;
}

static struct group *group_of(struct load *l, size_t machine, const struct ctf_dir *d)
{
	const struct machine *m = &l->machine[machine];
	for (size_t i = 0; i < l->groups; i++) {
		struct group *g = &l->group[i];
		if (g->machine == machine && *d->meta.uuid && strcmp(g->first_dir->meta.uuid, d->meta.uuid) == 0)
			return g;
	}
	struct group *g = ARRAY_PUSH(l->group, l->groups, l->groups_cap);
	*g = (struct group){ .machine = machine, .first_dir = d };
	g->ctf.names = &m->trace->names;
	g->ctf.layout = (const struct layout *const *)m->layout;
	g->ctf.layouts = m->layouts;
	return g;
}

static void add_uuid(struct trace *t, const char *uuid)
{
	if (!*uuid || strstr(t->uuid, uuid))
		return;
	char *both = mem_printf("%s%s%s", t->uuid, *t->uuid ? "," : "", uuid);
	free(t->uuid);
	t->uuid = both;
}

static char *folder_name(const char *dir)
{
	size_t end = strlen(dir);
	while (end > 1 && dir[end - 1] == '/')
		end--;
	size_t begin = end;
	while (begin && dir[begin - 1] != '/')
		begin--;
	return mem_printf("%.*s", (int)(end - begin), dir + begin);
}

static void name_machine(struct load *l, size_t i)
{
	struct machine *m = &l->machine[i];
	struct trace *t = m->trace;
	char *base = m->spec->name ? mem_dup(m->spec->name) :
		*t->hostname ? mem_dup(t->hostname) : folder_name(m->spec->dir);
	t->machine = mem_dup(base);
	for (unsigned number = 2;; number++) {
		size_t j = 0;
		while (j < i && strcmp(l->machine[j].trace->machine, t->machine) != 0)
			j++;
		if (j == i)
			break;
		free(t->machine);
		t->machine = mem_printf("%s-%u", base, number);
	}
	free(base);
}

static int open_machine(struct load *l, size_t i, const struct trace_spec *spec, struct error *err)
{
	struct machine *m = &l->machine[i];
	m->spec = spec;
	m->trace = mem_new(1, sizeof *m->trace);
	struct trace *t = m->trace;
	names_init(&t->names);
	store_ref(l->store);
	t->store = l->store;
	t->dir = mem_dup(spec->dir);
	t->uuid = mem_dup("");
	if (load_layouts(m, err) || ctf_find(spec->dir, &m->dir, &m->dirs, err))
		return -1;
	for (size_t k = 1; k < m->dirs; k++)
		if (!ctf_same_machine(&m->dir[0], &m->dir[k]))
			return error_set(err, STATUS_INPUT, "give each machine its own folder",
			                 "%s: holds traces of different machines or boots: %s and %s", spec->dir,
			                 m->dir[0].path, m->dir[k].path);
	t->hostname = mem_dup(m->dir[0].meta.hostname);
	t->tracer = mem_dup(m->dir[0].meta.tracer);
	name_machine(l, i);
	for (size_t k = 0; k < m->dirs; k++) {
		struct group *g = group_of(l, i, &m->dir[k]);
		*ARRAY_PUSH(g->ctf.dir, g->ctf.dirs, g->ctf.cap) = mem_dup(m->dir[k].path);
		g->bytes += m->dir[k].bytes;
		t->info.bytes += m->dir[k].bytes;
		add_uuid(t, m->dir[k].meta.uuid);
	}
	return 0;
}

/* ---- tasks */

struct by_size { uint64_t bytes; size_t task; };

static int larger_first(const void *a, const void *b)
{
	const struct by_size *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->task < y->task ? -1 : x->task > y->task;
}

static int plan(struct load *l, struct error *err)
{
	for (size_t i = 0; i < l->groups; i++) {
		const struct group *g = &l->group[i];
		if (g->status) {
			*err = g->err;
			return -1;
		}
		l->tasks += g->ports;
		l->bytes += g->bytes;
	}
	l->task = mem_new(l->tasks + 1, sizeof *l->task);
	l->order = mem_new(l->tasks + 1, sizeof *l->order);
	struct by_size *size = mem_new(l->tasks + 1, sizeof *size);
	size_t n = 0;
	for (size_t i = 0; i < l->groups; i++) {
		struct group *g = &l->group[i];
		g->first_task = n;
		for (size_t p = 0; p < g->ports; p++, n++) {
			l->task[n] = (struct task){ .group = i, .port = p, .bytes = g->bytes / g->ports };
			size[n] = (struct by_size){ l->task[n].bytes, n };
		}
	}
	qsort(size, n, sizeof *size, larger_first);
	for (size_t i = 0; i < n; i++)
		l->order[i] = size[i].task;
	free(size);
	return 0;
}

/* ---- results */

static void note_stream(struct notes *notes, const char *machine, const char *stream, const struct decoded *d)
{
	if (d->broken)
		notes_add(notes, "%s: stream %s: damaged after %llu packets and %llu events; what follows is left out: %s",
		          machine, stream, (unsigned long long)d->packets, (unsigned long long)d->records.events, d->broken);
	if (d->clamped)
		notes_add(notes, "%s: stream %s: the clock went backwards before %llu events; their times were raised",
		          machine, stream, (unsigned long long)d->clamped);
	if (d->untimed)
		notes_add(notes, "%s: stream %s: %llu events without a usable time were left out", machine, stream,
		          (unsigned long long)d->untimed);
}

static void note_machine(struct notes *notes, const struct trace *t, uint64_t lost_packets, bool known)
{
	const struct trace_info *info = &t->info;
	if (!info->events)
		notes_add(notes, "%s: the trace in %s is empty: no event was recorded", t->machine, t->dir);
	else if (!known)
		notes_add(notes, "%s: no layout knows the events of this trace; name one, see stealscope-layout(5)",
		          t->machine);
	if (info->lost)
		notes_add(notes, "%s: the tracer lost %llu of %llu events; record with larger buffers", t->machine,
		          (unsigned long long)info->lost, (unsigned long long)(info->lost + info->events));
	if (lost_packets)
		notes_add(notes, "%s: %llu packets of the trace are missing", t->machine, (unsigned long long)lost_packets);
	if (t->names.full)
		notes_add(notes, "%s: too many different names; some are left out", t->machine);
}

/* Moves the decoded streams into the machines' traces. */
static void deliver(struct load *l, struct notes *notes)
{
	for (size_t i = 0; i < l->machines; i++) {
		struct machine *m = &l->machine[i];
		struct trace *t = m->trace;
		uint64_t lost_packets = 0;
		size_t cap = 0, layout = 0;
		for (size_t k = 0; k < l->groups; k++) {
			struct group *g = &l->group[k];
			if (g->machine != i)
				continue;
			layout = layout ? layout : atomic_load(&g->ctf.chosen);
			for (size_t p = 0; p < g->ports; p++) {
				struct decoded *d = &l->task[g->first_task + p].out;
				*ARRAY_PUSH(t->stream, t->streams, cap) = d->records;
				stream_init(&d->records);
				t->info.lost += d->lost_events;
				lost_packets += d->lost_packets;
				note_stream(notes, t->machine, g->port_name[p], d);
			}
		}
		t->layout = mem_dup(m->layout[layout ? layout - 1 : 0]->name);
		trace_publish(t, m->spec->role);
		note_machine(notes, t, lost_packets, layout > 0);
	}
}

static void load_release(struct load *l)
{
	for (size_t i = 0; i < l->tasks && l->task; i++) {
		free(l->task[i].out.broken);
		if (l->task[i].ran)
			stream_release(&l->task[i].out.records, l->store);
	}
	for (size_t i = 0; i < l->groups; i++) {
		struct group *g = &l->group[i];
		for (size_t k = 0; k < g->idles; k++)
			decoder_close(g->idle[k]);
		free(g->idle);
		for (size_t p = 0; p < g->ports; p++)
			free(g->port_name[p]);
		free(g->port_name);
		for (size_t k = 0; k < g->ctf.dirs; k++)
			free(g->ctf.dir[k]);
		free(g->ctf.dir);
	}
	for (size_t i = 0; i < l->machines; i++) {
		struct machine *m = &l->machine[i];
		for (size_t k = 0; k < m->layouts; k++)
			layout_free(m->layout[k]);
		free(m->layout);
		ctf_dirs_free(m->dir, m->dirs);
		trace_free(m->trace);
	}
	free(l->machine);
	free(l->group);
	free(l->task);
	free(l->order);
	store_unref(l->store);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->done);
}

static int run(struct load *l, const struct trace_spec *spec, struct error *err)
{
	for (size_t i = 0; i < l->machines; i++)
		if (open_machine(l, i, &spec[i], err))
			return -1;
	if (run_threads(l, open_thread, l->groups, err) || plan(l, err) || run_threads(l, decode_thread, l->tasks, err))
		return -1;
	for (size_t i = 0; i < l->tasks; i++) {
		if (l->task[i].status) {
			*err = l->task[i].err;
			return -1;
		}
	}
	return 0;
}

int trace_load(const struct trace_spec *spec, size_t n, const struct trace_options *options, struct trace **out,
               struct notes *notes, struct error *err)
{
	static const struct trace_options defaults = { 0 };
	struct load l = { .options = options ? options : &defaults, .machines = n };
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	l.workers = l.options->workers ? l.options->workers : cores > 1 ? (unsigned)cores : 1;
	l.workers = l.workers < MOST_WORKERS ? l.workers : MOST_WORKERS;
	pthread_mutex_init(&l.lock, NULL);
	pthread_cond_init(&l.done, NULL);
	l.machine = mem_new(n + 1, sizeof *l.machine);
	l.store = store_new(l.options->memory ? l.options->memory : MEMORY_DEFAULT, n, l.options->spill_dir, err);
	int status = l.store ? run(&l, spec, err) : -1;
	if (!status) {
		deliver(&l, notes);
		for (size_t i = 0; i < n; i++) {
			out[i] = l.machine[i].trace;
			l.machine[i].trace = NULL;
		}
	}
	load_release(&l);
	return status;
}
