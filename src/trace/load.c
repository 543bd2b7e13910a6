/* Loading: all machines' traces, decoded by a few threads, each packet once.
 *
 * First the packets of every CTF trace are found, and it is opened (a graph each), which tells its streams.  Then the
 * threads take tasks, largest first; a thread that needs a graph of a trace takes an idle one or opens another. */
#include "trace/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"

#define MEMORY_DEFAULT ((size_t)96 << 20)
#define MOST_DAMAGE 100  /* damaged packets of a stream after which the rest is given up */

/* ---- work of the threads */

static int find_packets_task(void *arg, size_t i)
{
	struct load *l = arg;
	stream_file_read(l->file[i]);
	return 0;
}

static int open_task(void *arg, size_t i)
{
	struct load *l = arg;
	if (!l->group[i].suspect)
		group_open(&l->group[i]);
	return 0;
}

static void put_idle(struct load *l, struct group *g, struct decoder *d)
{
	pthread_mutex_lock(&l->lock);
	*ARRAY_PUSH(g->idle, g->idles, g->idles_cap) = d;
	pthread_mutex_unlock(&l->lock);
}

static struct decoder *get_idle(struct load *l, struct group *g, struct error *err)
{
	struct decoder *d = NULL;
	pthread_mutex_lock(&l->lock);
	if (g->idles)
		d = g->idle[--g->idles];
	pthread_mutex_unlock(&l->lock);
	return d ? d : group_decoder(g, err);
}

/* A view that cannot be made or opened counts as one that shows something unexpected, not as a failure. */
static int run_in_view(struct load *l, const struct task *t, struct decode *w, struct decoded *out, struct error *err)
{
	struct group *g = &l->group[t->group];
	const struct stream_file *f = g->port[t->port].file;
	struct view v;
	const size_t first = (size_t)(w->packet - f->packet);
	w->port = 0;
	w->check = true;
	w->limit = false;
	w->before = first ? w->packet - 1 : NULL;
	out->unexpected = true;
	if (view_open(&v, f->dir, l->options->spill_dir, NULL))
		return 0;
	int status = 0;
	struct decoder *d = view_add(&v, f, first, first + w->packets, NULL) ? NULL :
		decoder_open(&g->ctf, &v.dir, 1, NULL);
	if (d && decoder_ports(d) == 1)
		status = decoder_run(d, w, out, err);
	decoder_close(d);
	view_close(&v);
	return status;
}

static int run_whole(struct load *l, const struct task *t, const struct decode *w, struct decoded *out,
                     struct error *err)
{
	struct group *g = &l->group[t->group];
	struct decoder *d = get_idle(l, g, err);
	if (!d)
		return -1;
	int status = decoder_run(d, w, out, err);
	put_idle(l, g, d);
	return status;
}

/* After a part that ended early: sets w to what follows the damaged packet.  False: nothing that can be read. */
static bool skip_damage(const struct task *t, const struct decoded *d, struct decode *w)
{
	const uint64_t used = d->packets + !d->open;  /* a packet whose header is damaged was not begun */
	if (!d->broken || !w->packet || used >= w->packets || t->parts > MOST_DAMAGE)
		return false;
	w->packet += used;
	w->packets -= used;
	w->lost_from = d->last;
	return true;
}

static void run_task(struct load *l, struct task *t)
{
	const struct port *p = &l->group[t->group].port[t->port];
	struct decode w = { .port = t->port, .store = l->store, .bytes = &l->bytes, .cancelled = &l->cancelled,
		.lost_first = p->lost_first, .lost_from = INT64_MIN };
	if (p->file) {
		w.packet = p->file->packet + t->first;
		w.packets = t->end - t->first;
		w.check = w.limit = t->end < p->file->packets;
	}
	uint64_t counted = 0;
	do {
		struct decoded *out = ARRAY_PUSH(t->part, t->parts, t->cap);
		*out = (struct decoded){ 0 };
		stream_init(&out->records);
		t->status = t->whole && t->parts == 1 ? run_whole(l, t, &w, out, &t->err) :
			run_in_view(l, t, &w, out, &t->err);
		counted += out->bytes;
		if (t->status || out->unexpected)
			break;
	} while (skip_damage(t, &t->part[t->parts - 1], &w));
	if (!t->status && t->part[t->parts - 1].unexpected) {
		if (t->parts == 1)
			t->unexpected = true;
		else  /* what came before the damage is all there is */
			decoded_release(&t->part[--t->parts], l->store);
	}
	if (counted < t->bytes)
		atomic_fetch_add(&l->bytes, t->bytes - counted);
}

static int decode_task(void *arg, size_t i)
{
	struct load *l = arg;
	struct task *t = &l->task[l->order[i]];
	run_task(l, t);
	return t->status;
}

/* ---- the thread that started them */

void load_tick(struct load *l)
{
	const struct progress *p = &l->options->progress;
	uint64_t done = atomic_load(&l->bytes);
	if (p->tick && p->tick(p->arg, "reading traces", done < l->total ? done : l->total, l->total))
		atomic_store(&l->cancelled, true);
}

static bool go_on(void *arg)
{
	struct load *l = arg;
	load_tick(l);
	return !atomic_load(&l->cancelled);
}

/* What fails says so in its task. */
static int run_tasks(struct load *l, int (*task)(void *arg, size_t i), size_t tasks, struct error *err)
{
	parallel_run(&(struct parallel){ .workers = l->workers, .task = task, .watch = go_on, .arg = l }, tasks);
	if (atomic_load(&l->cancelled))
		return error_set(err, STATUS_CANCELLED, NULL, "reading traces: interrupted");
	return 0;
}

/* So many traces at a time are tried, each by a process of its own. */
static int survey(struct load *l, struct error *err)
{
	for (size_t i = 0; i < l->groups + l->workers; i++) {
		if (i >= l->workers)
			group_surveyed(&l->group[i - l->workers]);
		if (i < l->groups)
			group_survey(&l->group[i]);
		load_tick(l);
	}
	return atomic_load(&l->cancelled) ? error_set(err, STATUS_CANCELLED, NULL, "reading traces: interrupted") : 0;
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

static void prepare(struct ctf *ctf, const struct machine *m)
{
	ctf->names = &m->trace->names;
	ctf->layout = (const struct layout *const *)m->layout;
	ctf->layouts = m->layouts;
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
	prepare(&g->ctf, m);
	return g;
}

void load_add_uuid(struct trace *t, const char *uuid)
{
	if (!*uuid || strstr(t->uuid, uuid))
		return;
	char *both = mem_printf("%s%s%s", t->uuid, *t->uuid ? "," : "", uuid);
	free(t->uuid);
	t->uuid = both;
}

/* Of trace-cmd, if that is where its trace is. */
static const struct dat *file_of(const struct machine *m)
{
	return m->dirs ? m->dir[0].dat : NULL;
}

/* What the file of a host that trace-cmd recorded together with its guests calls this one. */
static const char *recorded_name(const struct load *l, const struct dat *d)
{
	for (size_t i = 0; i < l->machines; i++) {
		const struct dat *host = file_of(&l->machine[i]);
		for (size_t k = 0; host && d->id && k < host->guests; k++)
			if (host->guest[k].id == d->id)
				return host->guest[k].name;
	}
	return NULL;
}

static const char *machine_of(const struct load *l, const struct dat_guest *g)
{
	for (size_t i = 0; i < l->machines; i++) {
		const struct dat *d = file_of(&l->machine[i]);
		if (d && d->id && d->id == g->id)
			return l->machine[i].trace->machine;
	}
	return g->name;
}

/* The threads that trace-cmd wrote down, by the names that their machines have got. */
static void name_vcpus(struct load *l, size_t i)
{
	const struct dat *d = file_of(&l->machine[i]);
	struct trace *t = l->machine[i].trace;
	for (size_t k = 0; d && k < d->guests; k++) {
		const struct dat_guest *g = &d->guest[k];
		const char *guest = machine_of(l, g);
		for (size_t v = 0; *guest && v < g->vcpus; v++)
			*ARRAY_PUSH(t->vcpu, t->vcpus, t->vcpus_cap) =
				(struct trace_vcpu){ mem_dup(guest), g->vcpu[v].cpu, (int32_t)g->vcpu[v].tid };
	}
}

static char *base_name(const struct load *l, const struct machine *m)
{
	const struct trace *t = m->trace;
	if (m->spec->name)
		return mem_dup(m->spec->name);
	if (file_of(m))
		return naming_file(m->dir[0].path, recorded_name(l, m->dir[0].dat), t->hostname);
	return *t->hostname ? mem_dup(t->hostname) : naming_folder(m->spec->dir);
}

static void name_machine(struct load *l, size_t i)
{
	struct machine *m = &l->machine[i];
	struct trace *t = m->trace;
	char *base = base_name(l, m);
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

static void add_told(struct load *l, struct machine *m, const struct told *t)
{
	m->told = &l->told[l->tolds++];
	*m->told = *t;
	prepare(&m->told->ctf, m);
}

static void open_file(struct load *l, struct machine *m, const struct dat *d)
{
	add_told(l, m, &(struct told){ .kind = &tracecmd_kind, .name = d->path, .source = d, .bytes = d->bytes,
		.most = d->cpus });
}

static int open_live(struct load *l, size_t i, struct error *err)
{
	struct machine *m = &l->machine[i];
	if (live_url_parse(m->spec->dir, &m->live, err))
		return -1;
	if (!m->live.host)
		return error_set(err, STATUS_INPUT, "add /host/HOSTNAME", "%s: names no machine", m->spec->dir);
	m->trace->hostname = mem_dup(m->live.host);
	m->trace->tracer = mem_dup("");
	add_told(l, m, &(struct told){ .kind = &live_kind, .name = m->spec->dir, .source = &m->live,
		.most = LIVE_STREAMS });
	return 0;
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
	if (load_layouts(m, err))
		return -1;
	if (trace_is_live(spec->dir))
		return open_live(l, i, err);
	if (ctf_find(spec->dir, &m->dir, &m->dirs, err))
		return -1;
	for (size_t k = 1; k < m->dirs; k++)
		if (!ctf_same_machine(&m->dir[0], &m->dir[k]))
			return error_set(err, STATUS_INPUT, "give each machine its own folder",
			                 "%s: holds traces of different machines or boots: %s and %s", spec->dir,
			                 m->dir[0].path, m->dir[k].path);
	t->hostname = mem_dup(m->dir[0].meta.hostname);
	t->tracer = mem_dup(m->dir[0].meta.tracer);
	if (m->dir[0].dat)
		open_file(l, m, m->dir[0].dat);
	for (size_t k = 0; k < m->dirs; k++) {
		t->info.bytes += m->dir[k].bytes;
		load_add_uuid(t, m->dir[k].meta.uuid);
		if (m->dir[k].dat)
			continue;
		struct group *g = group_of(l, i, &m->dir[k]);
		*ARRAY_PUSH(g->dir, g->dirs, g->dirs_cap) = mem_dup(m->dir[k].path);
		g->bytes += m->dir[k].bytes;
	}
	return 0;
}

static void load_release(struct load *l)
{
	for (size_t i = 0; i < l->tasks; i++) {
		for (size_t k = 0; k < l->task[i].parts; k++)
			decoded_release(&l->task[i].part[k], l->store);
		free(l->task[i].part);
	}
	for (size_t i = 0; i < l->groups; i++)
		group_release(&l->group[i]);
	for (size_t i = 0; i < l->tolds; i++)
		told_release(&l->told[i], l->store);
	free(l->told);
	for (size_t i = 0; i < l->machines; i++) {
		struct machine *m = &l->machine[i];
		for (size_t k = 0; k < m->layouts; k++)
			layout_free(m->layout[k]);
		free(m->layout);
		ctf_dirs_free(m->dir, m->dirs);
		live_url_release(&m->live);
		trace_free(m->trace);
	}
	free(l->machine);
	free(l->group);
	free(l->file);
	free(l->task);
	free(l->order);
	store_unref(l->store);
	pthread_mutex_destroy(&l->lock);
}

/* A view that showed something else than it should (a libbabeltrace2 that reads indexes in another way): those ports
 * are decoded once more, whole. */
static void plan_again(struct load *l)
{
	l->ordered = 0;
	for (size_t i = 0; i < l->groups; i++) {
		for (size_t p = 0; p < l->group[i].ports; p++) {
			struct port *port = &l->group[i].port[p];
			bool again = false;
			for (size_t k = 0; k < port->tasks; k++)
				again |= l->task[port->first_task + k].unexpected;
			if (!again)
				continue;
			for (size_t k = 0; k < port->tasks; k++) {
				struct task *t = &l->task[port->first_task + k];
				while (t->parts)
					decoded_release(&t->part[--t->parts], l->store);
				t->status = 0;
			}
			l->task[port->first_task].whole = true;
			l->task[port->first_task].end = port->file->packets;
			l->order[l->ordered++] = port->first_task;
		}
	}
}

static int check_tasks(const struct load *l, struct error *err)
{
	for (size_t i = 0; i < l->tasks; i++) {
		if (l->task[i].status) {
			*err = l->task[i].err;
			return -1;
		}
	}
	return 0;
}

static void list_files(struct load *l)
{
	for (size_t i = 0; i < l->groups; i++) {
		struct group *g = &l->group[i];
		group_list(g);
		for (size_t d = 0; d < g->dirs; d++)
			for (size_t k = 0; k < g->files[d]; k++)
				*ARRAY_PUSH(l->file, l->files, l->files_cap) = &g->file[d][k];
	}
}

static int run(struct load *l, const struct trace_spec *spec, struct error *err)
{
	for (size_t i = 0; i < l->machines; i++)
		if (open_machine(l, i, &spec[i], err))
			return -1;
	for (size_t i = 0; i < l->machines; i++)
		name_machine(l, i);
	for (size_t i = 0; i < l->machines; i++)
		name_vcpus(l, i);
	for (size_t i = 0; i < l->groups; i++)
		l->total += l->group[i].bytes;
	list_files(l);
	if (run_tasks(l, find_packets_task, l->files, err) || survey(l, err) ||
	    run_tasks(l, open_task, l->groups, err))
		return -1;
	for (size_t i = 0; i < l->groups; i++) {
		struct group *g = &l->group[i];
		if (g->suspect || g->status)
			group_rescue(g, l->options->spill_dir);
		if (g->status) {
			*err = g->err;
			return -1;
		}
	}
	plan_tasks(l->group, l->groups, l->workers, &l->task, &l->tasks, &l->order);
	l->ordered = l->tasks;
	if (load_told(l, err) || run_tasks(l, decode_task, l->ordered, err) || check_tasks(l, err))
		return -1;
	plan_again(l);
	return run_tasks(l, decode_task, l->ordered, err) || check_tasks(l, err) ? -1 : 0;
}

int trace_load(const struct trace_spec *spec, size_t n, const struct trace_options *options, struct trace **out,
               struct notes *notes, struct error *err)
{
	static const struct trace_options defaults = { 0 };
	struct load l = { .options = options ? options : &defaults, .machines = n };
	l.workers = parallel_workers(l.options->workers);
	pthread_mutex_init(&l.lock, NULL);
	l.machine = mem_new(n + 1, sizeof *l.machine);
	l.told = mem_new(n + 1, sizeof *l.told);
	l.store = store_new(l.options->memory ? l.options->memory : MEMORY_DEFAULT, l.options->spill_dir, err);
	int status = l.store ? run(&l, spec, err) : -1;
	if (!status) {
		for (size_t i = 0; i < n; i++) {
			deliver(&l, i, notes);
			out[i] = l.machine[i].trace;
			l.machine[i].trace = NULL;
		}
	}
	load_release(&l);
	return status;
}
