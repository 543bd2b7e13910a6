/* Records of a pCPU to events. Only run states, pauses, a domain's end, losses, VM entries and exits, and entries of
 * paravirtualized vCPUs into the hypervisor become events; all other records are skipped by their length, so unknown ones
 * do no harm. */
#include <endian.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/string_table.h"
#include "trace/xen/xen.h"

#define BLOCK_BYTES (64 << 10)       /* a read's size, bytes */
#define RECORD_BYTES_MAX 40          /* size of the longest record, bytes */
#define TIME_MAX (INT64_C(1) << 61)  /* greatest time, ns since the TSC was 0 */
#define EXIT_SEARCH_MAX (1U << 20)  /* events among which the kind of the exit reasons is searched */
#define NAMES 256              /* size of the cache of domain names, power of two */

enum record {
	RUN_STATE = 0x21001, RUN_STATES_OF_IT = 0x330,  /* old state in bits 8 and 9, new state in bits 4 and 5 */
	SCHEDULER_VERBOSE = 0x28000,  /* first of the records that include SLEEP */
	DOMAIN_ADD = 0x28001, DOMAIN_REMOVE = 0x28002, SLEEP = 0x28003,
	PV_ENTRIES = 0x201000, PV_64_BIT = 0x100,  /* with the number of an enum xen_pv_entry; 64-bit: longer addresses */
	SWITCH_NEXT = 0x2800f,  /* since Xen 4.13: domain, vCPU, ns since it left its last pCPU (modulo 2^32; 0: unknown) */
	VM_ENTRY = 0x81001, VM_EXIT = 0x81002, VM_EXIT_SVM = 0x81003,  /* VM_EXIT: VMX, before Xen 4.19 also SVM */
	VM_64_BIT = 0x100,
	VM_HYPERCALL = 0x82012,  /* follows the exit, without a time of its own */
};

struct xen_cursor {
	const struct xen_file *file;
	const struct xen_pcpu *pcpu;
	const struct clock_scale *scale;
	struct string_cache *names;
	struct event_sink *out;
	int64_t last;            /* time of the last record that may be an event, ns; INT64_MIN: none yet */
	const char *damage;
	bool has_stops;          /* a record showed that SLEEP is recorded, too */
	struct { uint32_t word, idle_ns; } next;  /* from SWITCH_NEXT: vCPU as in a run state; 0: unknown */
	struct event exit;       /* VM exit that is put at the next record, which may contain its hypercall; kind EV_OTHER:
	                          * none */
	uint64_t tsc_max;        /* records with later times are skipped: they are damage */
	struct { uint32_t id; int64_t name; } name[NAMES];  /* name 0: unused */
};

static int64_t name_of(struct xen_cursor *c, uint32_t domain)
{
	const uint32_t slot = domain % NAMES;
	char text[32];
	if (c->name[slot].name && c->name[slot].id == domain)
		return c->name[slot].name;
	const struct xen_domain *d = xen_domain_find(&c->file->texts, domain);
	snprintf(text, sizeof text, "dom %u", (unsigned)domain);
	const char *name = d ? d->name : text;
	c->name[slot].id = domain;
	c->name[slot].name = string_cache_put(c->names, name, strlen(name));
	return c->name[slot].name;
}

static struct event event_at(const struct xen_cursor *c, int64_t ts, enum event_kind kind)
{
	return (struct event){ .ts = ts, .kind = (uint16_t)kind, .cpu = c->pcpu->number, .tid = -1, .pid = -1 };
}

static int put_run_state(struct xen_cursor *c, int64_t ts, uint32_t record, uint32_t word)
{
	const uint32_t domain = word >> 16, vcpu = word & 0xffff;
	const uint32_t old = record >> 8 & 3, state = record >> 4 & 3;
	struct event ev = event_at(c, ts, EV_VCPU_STATE);
	if (old == state)
		return 0;
	if (domain == XEN_IDLE_DOMAIN) {
		if ((old == VCPU_STATE_RUNNING) == (state == VCPU_STATE_RUNNING))
			return 0;
		ev.vcpu_state.vm = EVENT_ABSENT;
	} else if (domain >= XEN_HYPERVISOR_DOMAINS) {
		return 0;
	} else {
		ev.vcpu_state.vm = domain;
		ev.vcpu_state.name = name_of(c, domain);
	}
	ev.vcpu_state.vcpu = vcpu;
	ev.vcpu_state.old = old;
	ev.vcpu_state.state = state;
	const bool is_next = state == VCPU_STATE_RUNNING && c->next.idle_ns && c->next.word == word;
	ev.vcpu_state.idle_ns = is_next ? (int64_t)c->next.idle_ns : EVENT_ABSENT;
	if (is_next)
		c->next.idle_ns = 0;
	return event_sink_put(c->out, &ev);
}

/* Puts a vCPU's pause. `credit` caps a domain by the same records as a pause: `cap` if the domain has a cap there. */
static int put_stop(struct xen_cursor *c, int64_t ts, uint32_t domain, uint32_t vcpu)
{
	struct event ev = event_at(c, ts, EV_VCPU_STOP);
	const struct xen_domain *d = xen_domain_find(&c->file->texts, domain);
	if (domain >= XEN_HYPERVISOR_DOMAINS || vcpu > 0xffff)
		return 0;
	ev.vcpu_stop.vm = domain;
	ev.vcpu_stop.vcpu = vcpu;
	ev.vcpu_stop.cap = d && d->is_capped && c->file->texts.is_credit1;
	return event_sink_put(c->out, &ev);
}

/* Puts that stops are recorded from now on: where none is recorded, there is none. */
static int put_stops_recorded(struct xen_cursor *c, int64_t ts)
{
	struct event ev = event_at(c, ts, EV_VCPU_STOP);
	ev.vcpu_stop.vm = ev.vcpu_stop.vcpu = EVENT_ABSENT;
	c->has_stops = true;
	return event_sink_put(c->out, &ev);
}

static int put_vm(struct xen_cursor *c, int64_t ts, uint32_t domain, bool exists)
{
	struct event ev = event_at(c, ts, EV_VM);
	if (domain >= XEN_HYPERVISOR_DOMAINS)
		return 0;
	ev.vm.vm = domain;
	ev.vm.exists = exists;
	return event_sink_put(c->out, &ev);
}

/* Puts the vCPU that runs at a loss's end. current: the domain in the lower half, unlike in run states. */
static int put_running(struct xen_cursor *c, int64_t ts, uint32_t current)
{
	const uint32_t domain = current & 0xffff;
	struct event ev = event_at(c, ts, EV_VCPU_STATE);
	ev.vcpu_state.vm = domain == XEN_IDLE_DOMAIN ? EVENT_ABSENT : domain;
	ev.vcpu_state.vcpu = current >> 16;
	ev.vcpu_state.name = domain < XEN_HYPERVISOR_DOMAINS ? name_of(c, domain) : 0;
	ev.vcpu_state.state = ev.vcpu_state.old = VCPU_STATE_RUNNING;
	ev.vcpu_state.idle_ns = EVENT_ABSENT;
	return domain < XEN_HYPERVISOR_DOMAINS || domain == XEN_IDLE_DOMAIN ? event_sink_put(c->out, &ev) : 0;
}

/* Puts a loss: from the first lost record to the record that follows the loss. */
static int put_lost(struct xen_cursor *c, int64_t ts, const uint32_t *word)
{
	struct event ev = event_at(c, ts, EV_LOST);
	const uint64_t tsc = (uint64_t)le32toh(word[3]) << 32 | le32toh(word[2]);
	const int64_t first = tsc > c->tsc_max ? ts : clock_scale_ns(c->scale, tsc);
	const int64_t after = c->last == INT64_MIN ? first : c->last + 1;
	const int64_t begin = c->file->first <= c->tsc_max ? clock_scale_ns(c->scale, c->file->first) : ts;
	ev.ts = first > ts ? ts : first < after ? after : first;
	ev.ts = ev.ts < begin && begin <= ts ? begin : ev.ts;
	ev.lost.end = ts > ev.ts ? ts : ev.ts;
	ev.lost.count = le32toh(word[0]);
	return event_sink_put(c->out, &ev) ? -1 : put_running(c, ev.lost.end + 1, le32toh(word[1]));
}

static bool is_pv_entry(uint32_t record)
{
	return (record & ~(uint32_t)(PV_64_BIT | 0xf)) == PV_ENTRIES;
}

/* Puts an entry of the current vCPU into the hypervisor. The last word of a trap contains its number, the first word of a
 * hypercall its number. */
static int put_pv_entry(struct xen_cursor *c, int64_t ts, uint32_t record, unsigned n, const uint32_t *word)
{
	struct event ev = event_at(c, ts, EV_VCPU_EXIT);
	const uint32_t reason = (record & 0xf) << 20;
	const bool is_trap = reason == XEN_PV_TRAP, is_call = reason == XEN_PV_HYPERCALL;
	if (reason < XEN_PV_TRAP || reason == 7 << 20 || reason == 12 << 20 || reason > XEN_PV_HYPERCALL ||
	    ((is_trap || is_call) && n == 0))
		return 0;
	ev.vcpu_exit.vcpu = ev.vcpu_exit.ip = ev.vcpu_exit.ret = EVENT_ABSENT;
	ev.vcpu_exit.isa = EXIT_ISA_XEN_PV;
	ev.vcpu_exit.reason = reason | (is_trap ? le32toh(word[n - 1]) & 0x7fff : is_call ? le32toh(word[0]) & 0xfffff : 0);
	return event_sink_put(c->out, &ev);
}

static bool is_vm_exit(uint32_t record)
{
	return (record & ~(uint32_t)VM_64_BIT) == VM_EXIT || (record & ~(uint32_t)VM_64_BIT) == VM_EXIT_SVM;
}

static bool is_vm_entry_or_exit(uint32_t record)
{
	return (record & ~(uint32_t)VM_64_BIT) == VM_ENTRY || is_vm_exit(record);
}

/* Puts a VM entry or exit of the current vCPU. Payload of an exit: reason, instruction pointer (lower half, upper half). */
static int put_vm_entry_or_exit(struct xen_cursor *c, int64_t ts, uint32_t record, unsigned n, const uint32_t *word)
{
	struct event ev = event_at(c, ts, is_vm_exit(record) ? EV_VCPU_EXIT : EV_VCPU_ENTRY);
	ev.vcpu_exit.vcpu = ev.vcpu_exit.isa = ev.vcpu_exit.ip = ev.vcpu_exit.ret = EVENT_ABSENT;
	ev.vcpu_exit.reason = EVENT_ABSENT;
	if (!is_vm_exit(record))
		return event_sink_put(c->out, &ev);
	if (n == 0)
		return 0;
	const bool is_svm = (record & ~(uint32_t)VM_64_BIT) == VM_EXIT_SVM;
	const int isa = is_svm ? EXIT_ISA_SVM : c->file->texts.exit_isa;
	ev.vcpu_exit.isa = isa ? isa : EVENT_ABSENT;
	ev.vcpu_exit.reason = isa == EXIT_ISA_VMX ? le32toh(word[0]) & 0xffff : le32toh(word[0]);
	if (n >= 2)
		ev.vcpu_exit.ip = (int64_t)(le32toh(word[1]) | (n >= 3 ? (uint64_t)le32toh(word[2]) << 32 : 0));
	c->exit = ev;
	return 0;
}

/* Sets the hypercall that is the reason for the VM exit before. */
static void set_vm_hypercall(struct xen_cursor *c, uint32_t number)
{
	if (c->exit.kind == EV_VCPU_EXIT && c->exit.vcpu_exit.isa != EVENT_ABSENT && number <= UINT8_MAX)
		c->exit.vcpu_exit.ret = number;
}

static int put_pending_exit(struct xen_cursor *c)
{
	const struct event ev = c->exit;
	c->exit.kind = EV_OTHER;
	return ev.kind == EV_VCPU_EXIT ? event_sink_put(c->out, &ev) : 0;
}

static int put_record(struct xen_cursor *c, uint32_t record, unsigned n, uint64_t tsc, const uint32_t *word)
{
	const bool is_run_state = (record & ~(uint32_t)RUN_STATES_OF_IT) == RUN_STATE && n >= 1;
	if (tsc > c->tsc_max)
		return 0;
	if (!c->has_stops && (record & 0xfffff000) == SCHEDULER_VERBOSE &&
	    put_stops_recorded(c, clock_scale_ns(c->scale, tsc)))
		return -1;
	if (is_run_state)
		return put_run_state(c, clock_scale_ns(c->scale, tsc), record, le32toh(word[0]));
	if (record == SLEEP && n >= 2)
		return put_stop(c, clock_scale_ns(c->scale, tsc), le32toh(word[0]), le32toh(word[1]));
	if (record == SWITCH_NEXT && n == 4) {
		c->next.word = le32toh(word[0]) << 16 | (le32toh(word[1]) & 0xffff);
		c->next.idle_ns = le32toh(word[2]);
	}
	if ((record == DOMAIN_ADD || record == DOMAIN_REMOVE) && n >= 1)
		return put_vm(c, clock_scale_ns(c->scale, tsc), le32toh(word[0]), record == DOMAIN_ADD);
	if (record == XEN_LOST_RECORDS && n >= 4)
		return put_lost(c, clock_scale_ns(c->scale, tsc), word);
	if (is_pv_entry(record))
		return put_pv_entry(c, clock_scale_ns(c->scale, tsc), record, n, word);
	if (is_vm_entry_or_exit(record))
		return put_vm_entry_or_exit(c, clock_scale_ns(c->scale, tsc), record, n, word);
	return 0;
}

static bool is_event(const struct xen_cursor *c, uint32_t record)
{
	return (!c->has_stops && (record & 0xfffff000) == SCHEDULER_VERBOSE) ||
	       (record & 0xfffff000) == 0x21000 || (record == SWITCH_NEXT && c->file->texts.has_idle_ns) ||
	       (record >= DOMAIN_ADD && record <= SLEEP) || record == XEN_LOST_RECORDS ||
	       is_pv_entry(record) || is_vm_entry_or_exit(record);
}

/* Decodes the complete records in buf. Returns the number of bytes consumed; -1 on failure. c->damage is set where the
 * records end. */
static ssize_t decode_block(struct xen_cursor *c, const unsigned char *buf, size_t len)
{
	size_t at = 0;
	while (len - at >= 4) {
		uint32_t head, word[XEN_WORDS_MAX];
		memcpy(&head, buf + at, sizeof head);
		const struct xen_head h = xen_head(le32toh(head));
		const size_t size = xen_record_size(h);
		if (len - at < size)
			break;
		if (h.record == XEN_CPU_CHANGE || head == 0) {  /* Xen writes no record 0: zeros are a hole in the file */
			c->damage = head ? "a CPU_CHANGE record is inside a window" : "a window contains zeros";
			return (ssize_t)at;
		}
		if (h.record == VM_HYPERCALL && h.words >= 1) {
			memcpy(word, buf + at + 4 + 8 * (size_t)h.has_tsc, sizeof *word);
			set_vm_hypercall(c, le32toh(word[0]));
		}
		if (c->exit.kind == EV_VCPU_EXIT && put_pending_exit(c))
			return -1;
		if (h.has_tsc && h.record != XEN_WRAP_BUFFER) {
			uint64_t tsc;
			memcpy(&tsc, buf + at + 4, sizeof tsc);
			tsc = le64toh(tsc);
			if (is_event(c, h.record)) {
				memcpy(word, buf + at + 12, 4 * (size_t)h.words);
				if (put_record(c, h.record, h.words, tsc, word))
					return -1;
				c->last = tsc <= c->tsc_max ? clock_scale_ns(c->scale, tsc) : c->last;
			}
		}
		at += size;
	}
	return (ssize_t)at;
}

static int decode_window(struct xen_cursor *c, const struct xen_window *w, int fd, const char *path, unsigned char *buf)
{
	size_t kept = 0;
	for (uint64_t done = 0; done < w->bytes && !c->damage;) {
		const uint64_t left = w->bytes - done, want = left < BLOCK_BYTES ? left : BLOCK_BYTES;
		const ssize_t got = pread(fd, buf + kept, want, (off_t)(w->at + done));
		if (got < 0)
			return error_read(c->out->err, NULL, "%s", path);
		if (got == 0) {
			c->damage = "the file became shorter";
			return 0;
		}
		const size_t len = kept + (size_t)got;
		const ssize_t used = decode_block(c, buf, len);
		if (used < 0)
			return -1;
		done += (uint64_t)got;
		kept = len - (size_t)used;
		if (kept >= RECORD_BYTES_MAX && !c->damage)
			c->damage = "a record has an impossible length";
		memmove(buf, buf + used, kept < RECORD_BYTES_MAX ? kept : 0);
	}
	if (kept && !c->damage)
		c->damage = "a window ends inside a record";
	return 0;
}

/* Puts an event without effect, so that the trace begins and ends with a record of any kind. */
static int put_end(struct xen_cursor *c, uint64_t tsc)
{
	const struct event ev = event_at(c, clock_scale_ns(c->scale, tsc), EV_OTHER);
	return tsc && tsc <= c->tsc_max ? event_sink_put(c->out, &ev) : 0;
}

int xen_pcpu_decode(const struct xen_file *f, const struct xen_pcpu *p, int fd, const char *path,
                    const struct clock_scale *scale, struct string_cache *names, struct event_sink *out)
{
	struct xen_cursor *c = mem_new(1, sizeof *c);
	unsigned char *buf = mem_new(BLOCK_BYTES + RECORD_BYTES_MAX, 1);
	const uint64_t last = f->damage ? p->last : f->last;
	uint64_t bytes = 0;
	int status = 0;
	const uint128 tsc_max = (uint128)TIME_MAX * scale->millihertz / CLOCK_SCALE_NS;
	*c = (struct xen_cursor){ .file = f, .pcpu = p, .scale = scale, .names = names, .out = out, .last = INT64_MIN,
		.tsc_max = tsc_max < INT64_MAX ? (uint64_t)tsc_max : INT64_MAX };
	status = put_end(c, p->first > f->first ? f->first : p->first);  /* a loss may precede the pCPU's first record */
	for (size_t i = 0; i < p->windows && !status; i++) {
		c->damage = NULL;
		status = decode_window(c, &p->window[i], fd, path, buf);
		bytes += p->window[i].bytes;
		if (!status && c->damage)
			status = event_sink_report_damage(out, c->damage, i + 1 < p->windows);
		if (!status)
			status = event_sink_report_progress(out, bytes);
	}
	if (!status)
		status = put_pending_exit(c);
	if (!status && p->last >= p->first)
		status = put_end(c, p->last);
	if (!status && f->first <= last && last <= c->tsc_max)
		status = event_sink_add_coverage(out, p->number, clock_scale_ns(scale, f->first), clock_scale_ns(scale, last));
	free(buf);
	free(c);
	return status;
}

/* ---- kind of virtualization */

struct isa_search {
	struct event_sink sink;
	int isa;
	uint64_t events;
};

/* Returns the kind of virtualization that has this reason alone; 0: both may have it. */
static int isa_of_reason(uint32_t reason)
{
	enum { EXTERNAL_INTERRUPT = 1, CPUID = 10, HLT = 12, IO_INSTRUCTION = 30, MSR_READ = 31 };  /* VMX; no SVM exit */
	const bool is_vmx = reason == EXTERNAL_INTERRUPT || reason == CPUID || reason == HLT || reason == IO_INSTRUCTION ||
		reason == MSR_READ;
	const bool is_svm = (reason >= 0x60 && reason <= 0xff) || (reason >= 0x400 && reason <= 0x403);
	return is_vmx ? EXIT_ISA_VMX : is_svm ? EXIT_ISA_SVM : 0;
}

static int search_put(struct event_sink *o, const struct event *ev)
{
	struct isa_search *s = (struct isa_search *)o;  /* the sink is the first member */
	if (ev->kind == EV_VCPU_EXIT && ev->vcpu_exit.isa == EVENT_ABSENT)
		s->isa = isa_of_reason((uint32_t)ev->vcpu_exit.reason);
	return s->isa || ++s->events > EXIT_SEARCH_MAX ? -1 : 0;
}

static int search_damage(struct event_sink *o, const char *reason, bool continues)
{
	(void)o;
	(void)reason;
	(void)continues;
	return 0;
}

static int search_progress(struct event_sink *o, uint64_t bytes)
{
	(void)o;
	(void)bytes;
	return 0;
}

static int search_coverage(struct event_sink *o, uint16_t cpu, int64_t begin, int64_t end)
{
	(void)o;
	(void)cpu;
	(void)begin;
	(void)end;
	return 0;
}

int xen_find_exit_isa(const struct xen_file *f, int fd, const char *path, const struct clock_scale *scale,
                      struct string_cache *names)
{
	static const struct event_sink_ops ops = { .put = search_put, .add_coverage = search_coverage,
		.report_damage = search_damage, .report_progress = search_progress };
	struct error err = ERROR_INIT;
	struct isa_search s = { .sink = { .ops = &ops, .err = &err } };
	for (size_t i = 0; i < f->pcpus && !s.isa && s.events <= EXIT_SEARCH_MAX; i++)
		(void)xen_pcpu_decode(f, &f->pcpu[i], fd, path, scale, names, &s.sink);
	return s.isa;
}
