/* Files below truth/: opened at the start; the small files are written at the end. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "truth.h"

static FILE *create_file(struct sim *s, const char *name, const char *header)
{
	char *path = mem_printf("%s/%s", s->truth->dir, name);
	FILE *f = fopen(path, "w");

	if (!f)
		error_system(&s->err, NULL, "%s", path);
	else
		fprintf(f, "%s\n", header);
	free(path);
	return f;
}

int truth_open(struct sim *s, const char *dir)
{
	s->truth = mem_new(1, sizeof *s->truth);
	s->truth->dir = mem_dup(dir);
	s->truth->interval = create_file(s, "intervals.csv", "path,start,end,value");
	s->truth->pcpu = create_file(s, "pcpus.csv", "pcpu,start,end,system,tid,mode");
	s->truth->cause = create_file(s, "causes.csv", "at,what,machine,tid,by_machine,by_tid,in,cpu");
	s->truth->request = create_file(s, "requests.csv",
	                                "request,machine,tid,start,end,exec_ns,stolen_exec_ns,stolen_flight_ns,"
	                           "vmm_exec_ns,vmm_flight_ns,guest_wait_ns,blocked_ns");
	s->truth->loss = create_file(s, "losses.csv", "machine,cpu,start,end,records");
	s->truth->poll = create_file(s, "polls.csv", "vm,vcpu,start,end,outcome");
	if (s->groups_recorded && (!(s->truth->throttled = create_file(s, "throttled.csv", "tid,start,end")) ||
	                           !(s->truth->moves = create_file(s, "moves.csv", "tid,at,path"))))
		return -1;
	if (s->opt.siblings)
		s->truth->frequency = create_file(s, "frequencies.csv", "cpu,at,khz");
	if (s->opt.steal_reads)
		s->truth->steal = create_file(s, "steal.csv", "vm,vcpu,start,end,guest_start,guest_end,kind,tid");
	if ((s->opt.siblings && !s->truth->frequency) || (s->opt.steal_reads && !s->truth->steal))
		return -1;
	if (s->opt.counters)
		s->truth->progress = create_file(s, "progress.csv", "cpu,start,end,tid,khz,ipc,shared");
	if (s->opt.counters && !s->truth->progress)
		return -1;
	return s->truth->poll && s->truth->interval && s->truth->pcpu && s->truth->request && s->truth->loss && s->truth->cause
	       ? 0 : -1;
}

void truth_loss(struct cpu *c, int64_t end)
{
	struct truth_out *t = c->m->sim->truth;

	if (c->lost && t && c->lost_from <= end)
		fprintf(t->loss, "%s,%u,%" PRId64 ",%" PRId64 ",%" PRId64 "\n", c->m->is_host ? "host" : c->m->name, c->number,
		        c->lost_from, end, c->lost);
	c->lost = 0;
}

void truth_poll(const struct thread *t, int64_t end, bool won)
{
	const struct truth_out *out = t->m->sim->truth;

	if (out && end > t->halt_since)
		fprintf(out->poll, "%s,%u,%" PRId64 ",%" PRId64 ",%s\n", t->vcpu->m->name, t->vcpu->number, t->halt_since, end - 1,
		        won ? "won" : "lost");
}

/* Returns the time of the guest's trace clock, which stands still in a stop that sets it back. */
static int64_t guest_time(const struct machine *m, int64_t host)
{
	for (unsigned i = 0; i < m->sim->outages; i++) {
		const struct outage *o = &m->sim->outage[i];

		if (o->vm == m && o->kind != OUTAGE_PAUSE && host > o->from && host < o->to)
			return clock_guest(m, o->from);
	}
	return clock_guest(m, host);
}

void truth_steal(const struct cpu *guest, int64_t start, int64_t end, const char *kind)
{
	const struct sim *s = guest->m->sim;

	if (s->truth && s->truth->steal && end > start)
		fprintf(s->truth->steal, "%s,%u,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%s,%d\n", guest->m->name,
		        guest->number, start, end - 1, guest_time(guest->m, start), guest_time(guest->m, end), kind,
		        guest->cur->tid);
}

static int write_clocks(struct sim *s)
{
	FILE *f = create_file(s, "clocks.csv",
	                      "machine,from_host_ns,ref_host_ns,ref_guest_ns,rate_2p60,alpha,alpha_ppm,beta_ns");

	if (!f)
		return -1;
	for (unsigned i = 0; i < s->machines; i++)
		for (unsigned k = 0; k < s->machine[i]->clocks; k++) {
			const struct clock_part *p = &s->machine[i]->clock[k];
			long double rate = (long double)p->rate / (long double)(UINT64_C(1) << 60);
			long double alpha = 1 / (1 + rate);

			fprintf(f, "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.18Lf,%.9Lf,%.3Lf\n",
			        i == 0 ? "host" : s->machine[i]->name, k ? p->from : s->first_record, p->ref_host, p->ref_guest,
			        p->rate, alpha, -rate / (1 + rate) * 1e6L,
			        (long double)(p->ref_host - p->ref_guest) + rate / (1 + rate) * (long double)p->ref_guest);
		}
	return fclose(f) ? error_system(&s->err, NULL, "%s/clocks.csv", s->truth->dir) : 0;
}

static int write_machines(struct sim *s)
{
	FILE *f = create_file(s, "vcpus.csv", "vm,vcpu,host_tid,host_pid,traced,parent");

	if (!f)
		return -1;
	for (size_t i = 0; i < s->lives; i++) {
		const struct life *v = &s->life[i];

		fprintf(f, "%s,%u,%d,%d,%d,%s\n", v->vm->name, v->number, v->tid, v->pid, v->vm->traced && v->vm->records,
		        v->vm->below->is_host ? "host" : v->vm->below->name);
	}
	return fclose(f) ? error_system(&s->err, NULL, "%s/vcpus.csv", s->truth->dir) : 0;
}

static int write_traces(struct sim *s)
{
	FILE *f = create_file(s, "traces.csv", "machine,first_host_ns,last_host_ns,records,lost");

	if (!f)
		return -1;
	for (unsigned i = 0; i < s->machines; i++) {
		const struct machine *m = s->machine[i];

		if (m->records)
			fprintf(f, "%s,%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 "\n", m->is_host ? "host" : m->name, m->first,
			        m->last, m->records, m->lost);
	}
	return fclose(f) ? error_system(&s->err, NULL, "%s/traces.csv", s->truth->dir) : 0;
}

static int write_info(struct sim *s)
{
	FILE *f = create_file(s, "info.csv", "key,value");

	if (!f)
		return -1;
	fprintf(f, "scenario,%s\nseed,%" PRIu64 "\nbegin,%" PRId64 "\nend,%" PRId64 "\nrecords,%" PRIu64 "\n", s->opt.scenario,
	        s->opt.seed, s->first_record, s->last_record, s->records);
	for (int i = 0; i < REC_COUNT; i++)
		if (s->kind_records[i])
			fprintf(f, "records %s,%" PRIu64 "\n", record_class[i].name, s->kind_records[i]);
	return fclose(f) ? error_system(&s->err, NULL, "%s/info.csv", s->truth->dir) : 0;
}

static void close_cpu(struct cpu *c, int64_t end)
{
	struct sim *s = c->m->sim;

	truth_loss(c, end);
	truth_interval(s, TRACK_CURRENT, c->m, c->number, &c->current, end);
	truth_interval(s, TRACK_OWNER, c->m, c->number, &c->owner, end);
	truth_interval(s, TRACK_IRQ, c->m, c->number, &c->interrupt, end);
	truth_interval(s, TRACK_VSTATUS, c->m, c->number, &c->vstatus, end);
	truth_interval(s, TRACK_PCPU, c->m, c->number, &c->pcpu, end);
	truth_end_out_by(c, end);
	truth_interval(s, TRACK_VTHREAD, c->m, c->number, &c->vthread, end);
	if (!c->host)
		truth_write_user(c, end);
}

/* Ends all intervals at the last record and writes the small files. */
int truth_close(struct sim *s)
{
	struct truth_out *t = s->truth;
	int result = 0;

	for (unsigned i = 0; i < s->machines; i++) {
		for (unsigned k = 0; k < s->machine[i]->cpus; k++)
			close_cpu(&s->machine[i]->cpu[k], s->last_record);
		for (int32_t tid = 1; tid < TIDS; tid++) {
			struct thread *of = s->machine[i]->by_tid[tid];

			if (of && of->spins_since)
				truth_spin(of, false);
			if (of)
				truth_close_thread(of, s->last_record);
		}
	}
	if (write_clocks(s) < 0 || write_machines(s) < 0 || write_traces(s) < 0 || write_info(s) < 0)
		result = -1;
	FILE *file[] = { t->interval, t->pcpu, t->request, t->loss, t->cause, t->poll, t->frequency, t->progress, t->steal,
	                 t->throttled, t->moves };
	for (size_t i = 0; i < sizeof file / sizeof *file; i++)
		if (file[i] && (ferror(file[i]) | fclose(file[i])))
			result = error_system(&s->err, NULL, "%s", t->dir);
	free(t->dir);
	free(t);
	s->truth = NULL;
	return result;
}
