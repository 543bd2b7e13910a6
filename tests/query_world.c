#include "query_world.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/mem.h"
#include "refs.h"
#include "test.h"

static const char *const owners[] = { "idle", "host", "A", "B" };

void world_open(struct world *w)
{
	struct error err = ERROR_INIT;
	/* Hundreds of small files are synced: keep them in a file system in memory. */
	*w = (struct world){ .path = "/dev/shm/stealscope-flow-XXXXXX" };
	if (access("/dev/shm", W_OK) != 0)
		snprintf(w->path, sizeof w->path, "/tmp/stealscope-flow-XXXXXX");
	int fd = mkstemp(w->path);
	assert_true(fd >= 0);
	close(fd);
	struct history_options options = { .chunk = 3 };
	w->b = history_create(w->path, &options, &err);
	if (!w->b)
		fail_msg("%s", err.text);
	w->vcpu_set = history_state_set(w->b, "vcpu", vcpu_state_name, VCPU_STATE_COUNT);
	w->thread_set = history_state_set(w->b, "thread", thread_state_name, THREAD_STATE_COUNT);
	w->out_set = history_state_set(w->b, "out by", out_reason_name, OUT_REASON_COUNT);
	w->owner_set = history_state_set(w->b, "owner", owners, COUNT(owners));
}

static int64_t state_number(const char *const *name, unsigned n, const char *text)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(name[i], text) == 0)
			return i;
	fail_msg("no state %s", text);
	return 0;
}

void world_row(struct world *w, const char *path, const char *changes)
{
	struct error err = ERROR_INIT;
	const char *last = strrchr(path, '/') + 1;
	bool thread = strstr(path, "/Threads/"), status = strcmp(last, "Status") == 0, owner = strcmp(last, "Owner") == 0,
	     out = strcmp(last, "Out By") == 0;
	bool string = strcmp(last, "Name") == 0 || strcmp(last, "Interrupt") == 0 || strcmp(last, "Woken In") == 0 ||
	              strcmp(last, "Parent") == 0 || strcmp(last, "Exit") == 0 || strcmp(last, "Lock") == 0,
	     ref = strcmp(last, "Woken By") == 0 || strcmp(last, "VM") == 0;
	int type = status || owner || out ? HISTORY_STATE : string ? HISTORY_STRING : ref ? HISTORY_REF : HISTORY_INT;
	uint32_t attr = history_attribute(w->b, path, (enum history_type)type,
	                                  owner ? w->owner_set : out ? w->out_set : thread ? w->thread_set : w->vcpu_set, &err);
	if (attr == HISTORY_NONE)
		fail_msg("%s", err.text);
	*ARRAY_PUSH(w->type, w->rows, w->type_cap) = type;
	w->rows--;
	*ARRAY_PUSH(w->attr, w->rows, w->attr_cap) = attr;
	char *copy = mem_dup(changes), *save = NULL;
	for (char *part = strtok_r(copy, ";", &save); part; part = strtok_r(NULL, ";", &save)) {
		char *rest;
		int64_t t = strtoll(part, &rest, 10);
		rest += strspn(rest, " ");
		struct world_change *c = ARRAY_PUSH(w->change, w->len, w->cap);
		*c = (struct world_change){ .t = t, .row = (uint32_t)w->rows - 1, .order = (int64_t)w->len };
		if (strcmp(rest, "-") == 0)
			c->number = HISTORY_NULL;
		else if (owner)
			c->number = state_number(owners, COUNT(owners), rest);
		else if (out)
			c->number = state_number(out_reason_name, OUT_REASON_COUNT, rest);
		else if (status)
			c->number = thread ? state_number(thread_state_name, THREAD_STATE_COUNT, rest)
			                   : state_number(vcpu_state_name, VCPU_STATE_COUNT, rest);
		else if (string || ref)
			c->text = mem_dup(rest);
		else
			c->number = strtoll(rest, NULL, 10);
	}
	free(copy);
}

void world_rowf(struct world *w, const char *changes, const char *fmt, ...)
{
	char path[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(path, sizeof path, fmt, ap);
	va_end(ap);
	world_row(w, path, changes);
}

void world_rows(struct world *w, const char *whose, const struct world_rows *rows)
{
	const struct { const char *leaf, *changes; } row[] = {
		{ "Status", rows->status }, { "CPU", rows->cpu }, { "Name", rows->name }, { "PID", rows->pid }, { "VM", rows->vm },
		{ "Woken By", rows->woken_by }, { "Woken In", rows->woken_in }, { "Lock", rows->lock },
		{ "Current Thread", rows->current }, { "Interrupt", rows->interrupt }, { "Host Thread", rows->host_thread },
		{ "pCPU", rows->pcpu }, { "Exit", rows->exit }, { "Out By", rows->out_by },
	};
	const char *id = strchr(whose, '/') + 1, *dir = *id == 'C' ? "CPUs" : "Threads";
	const int machine = (int)(id - 1 - whose);
	for (size_t i = 0; i < COUNT(row); i++)
		if (row[i].changes && strncmp(whose, "host/", 5) == 0)
			world_rowf(w, row[i].changes, "/Host/%s/%s/%s", dir, id, row[i].leaf);
		else if (row[i].changes)
			world_rowf(w, row[i].changes, "/Virtual Machines/%.*s/%s/%s/%s", machine, whose, dir, id, row[i].leaf);
}

static int by_time(const void *a, const void *b)
{
	const struct world_change *x = a, *y = b;
	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

void world_close(struct world *w, int64_t begin, int64_t end)
{
	struct error err = ERROR_INIT;
	for (size_t i = 0; i < w->len; i++)
		w->change[i].t = w->change[i].t < begin ? begin : w->change[i].t;  /* "0 X": X from the start of the history */
	if (w->len)
		qsort(w->change, w->len, sizeof *w->change, by_time);
	for (size_t i = 0; i < w->len; i++) {
		const struct world_change *c = &w->change[i];
		int r = c->text && w->type[c->row] == HISTORY_REF ? set_ref(w->b, c->t, w->attr[c->row], c->text, &err)
		      : c->text ? history_set_string(w->b, c->t, w->attr[c->row], c->text, &err)
		                : history_set(w->b, c->t, w->attr[c->row], c->number, &err);
		if (r < 0)
			fail_msg("%s", err.text);
	}
	if (history_finish(w->b, begin, end, &err) < 0)
		fail_msg("%s", err.text);
	w->h = history_open(w->path, &err);
	if (!w->h || catalog_open(&w->catalog, w->h, &err) < 0)
		fail_msg("%s", err.text);
}

void world_release(struct world *w)
{
	catalog_release(&w->catalog);
	history_close(w->h);
	unlink(w->path);
	for (size_t i = 0; i < w->len; i++)
		free(w->change[i].text);
	free(w->change);
	free(w->attr);
	free(w->type);
}

char *world_flow_text(const struct world *w, const struct flow *f, char *buf, size_t size)
{
	size_t used = 0;
	*buf = '\0';
	for (size_t i = 0; i < f->intervals && used < size; i++) {
		const struct flow_interval *p = &f->interval[i];
		const struct actor *is = &f->entry[p->entry].actor;
		char who[64] = "", pcpu[16] = "";
		if (is->machine >= 0)
			snprintf(who, sizeof who, " %s/%" PRId32, w->catalog.machine[is->machine].name, is->tid);
		if (p->pcpu >= 0)
			snprintf(pcpu, sizeof pcpu, " @%d", p->pcpu);
		used += (size_t)snprintf(buf + used, size - used, "%s%" PRId64 "-%" PRId64 " %s%s%s%s%s", i ? "; " : "",
		                         p->start, p->end, flow_kind_name[is->kind], who, *f->name[is->name] ? " " : "",
		                         f->name[is->name], pcpu);
	}
	return buf;
}

void world_check_tiling(const struct flow *f)
{
	int64_t sum = 0, by_entry = 0;
	double share = 0;
	assert_true(f->intervals > 0);
	assert_int_equal(f->interval[0].start, f->start);
	assert_int_equal(f->interval[f->intervals - 1].end, f->end);
	for (size_t i = 0; i < f->intervals; i++) {
		assert_true(f->interval[i].start <= f->interval[i].end);
		assert_true(f->entry[f->interval[i].entry].actor.name < f->names);
		if (i)
			assert_int_equal(f->interval[i - 1].end + 1, f->interval[i].start);
		sum += f->interval[i].end - f->interval[i].start + 1;
	}
	for (size_t i = 0; i < f->entries; i++) {
		by_entry += f->entry[i].duration;
		share += f->entry[i].share;
		if (i)
			assert_true(f->entry[i - 1].duration >= f->entry[i].duration);
	}
	assert_int_equal(sum, f->end - f->start + 1);
	assert_int_equal(by_entry, sum);
	assert_true(share > 0.999999 && share < 1.000001);
}

struct target world_target(const struct world *w, const char *text)
{
	struct error err = ERROR_INIT;
	struct target s;
	if (catalog_parse_target(&w->catalog, text, &s, &err) < 0)
		fail_msg("%s (%s)", err.text, err.remedy);
	return s;
}

void world_check_flow(const struct world *w, const char *target, int64_t from, int64_t to, const char *expected)
{
	struct error err = ERROR_INIT;
	struct flow f;
	char text[4096];
	struct target s = world_target(w, target);
	if (query_answer(flow_open(&w->catalog, &s, from, to, NULL, &err), &f, &err) < 0)
		fail_msg("%s", err.text);
	world_check_tiling(&f);
	assert_string_equal(world_flow_text(w, &f, text, sizeof text), expected);
	flow_release(&f);
}

void world_path(const struct world *w, const char *whose, int64_t from, int64_t to, const char *want)
{
	struct path p;
	struct error err = ERROR_INIT;
	char text[2000] = "";
	struct target s = world_target(w, whose);
	assert_int_equal(query_answer(path_open(&w->catalog, &s, from, to, &err), &p, &err), 0);
	int64_t next = p.start, sum = 0, unknown = 0;
	for (size_t i = 0; i < p.intervals; i++) {
		const struct path_interval *e = &p.interval[i];
		size_t used = strlen(text);
		assert_int_equal(e->start, next);
		next = e->end + 1;
		unknown += e->actor.kind == FLOW_UNKNOWN ? e->end - e->start + 1 : 0;
		char culprit[80] = "", near[24] = "";
		if (e->culprit.machine >= 0)
			snprintf(culprit, sizeof culprit, " <%s/%d %s>", w->catalog.machine[e->culprit.machine].name, e->culprit.tid,
			         p.name[e->culprit.name]);
		if (e->evidence >= 0)
			snprintf(near, sizeof near, " ~%d", (int)e->evidence);
		snprintf(text + used, sizeof text - used, "%s%d-%d %s %s/%d %s%s %s%s", i ? "; " : "", (int)e->start, (int)e->end,
		         e->actor.kind == FLOW_WAITING ? PATH_WAIT : flow_kind_name[e->actor.kind],
		    w->catalog.machine[e->actor.machine].name,
		         e->actor.tid, p.name[e->actor.name], culprit, path_edge_name[e->edge], near);
	}
	assert_int_equal(next, p.end + 1);
	for (size_t i = 0; i < p.sums; i++)
		sum += p.sum[i].duration;
	for (size_t i = 1; i < p.sums; i++)  /* the longest first, and of equal ones the lowest TID */
		assert_true(p.sum[i - 1].duration > p.sum[i].duration ||
		            (p.sum[i - 1].duration == p.sum[i].duration && p.sum[i - 1].actor.tid <= p.sum[i].actor.tid));
	assert_int_equal(sum, p.end - p.start + 1);
	assert_int_equal(p.unknown, unknown);
	assert_string_equal(text, want);
	path_release(&p);
}

void world_hog_takes(struct world *w)
{
	world_has(w, "host/CPU0", .current = "0 40; 30 99; 60 40");
	world_has(w, "host/40", .status = "0 RUNNING; 30 PREEMPTED; 60 RUNNING", .cpu = "0 0");
	world_has(w, "host/99", .status = "0 PREEMPTED; 30 RUNNING; 60 PREEMPTED", .name = "0 hog");
	world_has(w, "A/CPU0", .host_thread = "0 40", .pcpu = "0 0");
	world_has(w, "A/5", .name = "0 work");
}

void world_other_runs(struct world *w)
{
	world_has(w, "A/CPU0", .status = "0 RUNNING; 30 PREEMPTED; 60 RUNNING", .current = "0 6");
	world_has(w, "A/CPU1", .host_thread = "0 50");
	world_has(w, "A/5", .cpu = "0 1");
	world_has(w, "A/6", .status = "0 RUNNING; 30 VIRT_PREEMPTED; 60 RUNNING", .cpu = "0 0", .name = "0 other");
}
