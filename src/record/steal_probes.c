#include "record/steal_probes.h"

#include <sys/utsname.h>

#include "record/kernel_facts.h"
#include "record/probe_definitions.h"
#include "record/proc.h"

#define PREFIX "stealscope_"

/* ---- counters */

/* A counter that a hypervisor keeps in a per-CPU variable of the guest's kernel. */
struct counter {
	const char *name, *machine;      /* machine: uname -m */
	enum hypervisor_kind kind;       /* HYPERVISOR_UNKNOWN: any that is not known to be another one */
	const char *symbol, *function;   /* per-CPU variable; function that reads the counter */
	bool pointer;                    /* the variable contains the structure's address */
	unsigned offset, offline;        /* of the u64 in the structure, bytes; offline: of a second one; 0: none */
};

static const struct counter counters[] = {
	{ "kvm_steal_time", "x86_64", HYPERVISOR_KVM, "steal_time", "kvm_steal_clock", false, 0, 0 },
	{ "vmw_steal_time", "x86_64", HYPERVISOR_VMWARE, "vmw_steal_time", "vmware_steal_clock", false, 0, 0 },
	{ "xen_runstate", "x86_64", HYPERVISOR_XEN, "xen_runstate", "xen_steal_clock", false, 24, 40 },
	{ "xen_runstate", "aarch64", HYPERVISOR_XEN, "xen_runstate", "xen_steal_clock", false, 24, 40 },
	{ "pvtime", "aarch64", HYPERVISOR_UNKNOWN, "stolen_time_region", "para_steal_clock", true, 8, 0 },
	{ "sbi_sta", "riscv64", HYPERVISOR_UNKNOWN, "steal_time", "pv_time_steal_clock", false, 8, 0 },
};

static const struct counter *find_counter(const char *machine, enum hypervisor_kind kind)
{
	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
		const struct counter *c = &counters[i];
		if (strcmp(c->machine, machine) == 0 && (c->kind == kind ||
		    (c->kind == HYPERVISOR_UNKNOWN && kind <= HYPERVISOR_KVM)))
			return c;
	}
	return NULL;
}

/* ---- definitions in tracefs */

/* Defines one probe, "e:NAME ...", and adds its event. Returns NULL, or a failure's reason. */
static char *define(struct steal_probes *p, const char *kind, const char *name, const char *place)
{
	char *why = probe_define(p->tracefs, kind, name, place);
	if (!why)
		*ARRAY_PUSH(p->event, p->events, p->cap) = mem_dup(name);
	return why;
}

static void remove_events(struct steal_probes *p)
{
	for (size_t i = p->events; i-- > 0;) {
		if (strncmp(p->event[i], PREFIX, sizeof PREFIX - 1) == 0)
			probe_undefine(p->tracefs, p->event[i]);
		free(p->event[i]);
	}
	p->events = 0;
}

/* ---- probes that read the counter */

/* Formats the fetch argument of one CPU: "cpu1=+0x33080(@__per_cpu_offset+8):u64". A per-CPU variable's address is a
 * small offset up to Linux 6.14 on x86, and an address of the kernel, a negative number, elsewhere. */
static char *field(const struct counter *c, int64_t variable, unsigned cpu)
{
	const char *sign = variable < 0 ? "-" : "+";
	const uint64_t size = variable < 0 ? -(uint64_t)variable : (uint64_t)variable;
	const unsigned long long inside = c->pointer ? 0 : c->offset;
	if (c->pointer)
		return mem_printf(" cpu%u=+%u(%s0x%llx(@__per_cpu_offset+%u)):u64", cpu, c->offset, sign,
		                  (unsigned long long)size, 8 * cpu);
	const unsigned long long at = variable < 0 ? size - inside : size + inside;
	char *one = mem_printf(" cpu%u=%s0x%llx(@__per_cpu_offset+%u):u64", cpu, sign, at, 8 * cpu);
	if (!c->offline)
		return one;
	char *two = mem_printf("%s offline%u=%s0x%llx(@__per_cpu_offset+%u):u64", one, cpu, sign,
	                       (unsigned long long)(variable < 0 ? size - c->offline : size + c->offline), 8 * cpu);
	free(one);
	return two;
}

/* Returns the address of the counter's variable, relative to a CPU's area, in *variable. Returns NULL, or the reason why
 * it is unknown. */
static char *find_variable(const struct steal_probes *p, const struct counter *c, int64_t *variable)
{
	struct kernel_symbol s[] = { { .name = c->symbol }, { .name = "__per_cpu_offset" } };
	kernel_find_symbols(p->root, s, 2);
	*variable = (int64_t)s[0].address;
	if (!s[1].found)
		return mem_dup("/proc/kallsyms has no data symbols (CONFIG_KALLSYMS_ALL)");
	if (s[0].found && s[0].address)
		return NULL;
	/* BTF has offsets in the section. They are addresses where the section begins at 0: on x86 up to Linux 6.14, which has
	 * fixed_percpu_data there. */
	if (strcmp(c->machine, "x86_64") == 0 && kernel_btf_percpu(p->root, "fixed_percpu_data") == 0)
		*variable = kernel_btf_percpu(p->root, c->symbol);
	if (*variable > 0)
		return NULL;
	return s[0].found ? mem_dup("kernel addresses are hidden (sysctl kernel.kptr_restrict)")
	                  : mem_printf("the kernel has no symbol %s", c->symbol);
}

/* Events to which a source's probes are attached. */
struct places { const char *kind, *at_switch, *at_timer; };

static char *define_for(struct steal_probes *p, const struct places *at, const char *group, const char *fields)
{
	char *name = mem_printf("%s/steal_switch", group), *what = mem_printf("%s%s", at->at_switch, fields);
	char *why = define(p, at->kind, name, what);
	free(name);
	free(what);
	if (why)
		return why;
	name = mem_printf("%s/steal_timer", group);
	what = mem_printf("%s%s", at->at_timer, fields);
	why = define(p, at->kind, name, what);
	free(name);
	free(what);
	return why;
}

/* Defines the events of all CPUs. Returns NULL, or a failure's reason. */
static char *define_readers(struct steal_probes *p, const struct counter *c, const struct places *at)
{
	int64_t variable;
	char *why = find_variable(p, c, &variable), *group = probe_group(""), *fields = mem_dup("");
	p->per_cpu = p->cpus > STEAL_FIELDS_MAX;
	for (unsigned i = 0; i < p->cpus && !why; i++) {
		char *one = field(c, variable, i);
		if (p->per_cpu) {
			char *own = mem_printf("%s_c%u", group, i);
			why = define_for(p, at, own, one);
			free(own);
		} else {
			char *longer = mem_printf("%s%s", fields, one);
			free(fields);
			fields = longer;
		}
		free(one);
	}
	if (!p->per_cpu && !why)
		why = define_for(p, at, group, fields);
	free(fields);
	free(group);
	return why;
}

/* ---- sources: each returns NULL, or the reason why it cannot be used */

static char *open_event_probes(struct steal_probes *p, const struct counter *c)
{
	char *readme = proc_text("", NULL, "%s/README", p->tracefs);
	const bool has = !readme || strstr(readme, " e[:[");
	free(readme);
	if (!has)
		return mem_dup("the kernel has no event probes (CONFIG_EPROBE_EVENTS, Linux 5.15)");
	return define_readers(p, c, &(struct places){ "e", "sched.sched_switch", "timer.hrtimer_expire_entry" });
}

static char *open_kernel_probes(struct steal_probes *p, const struct counter *c)
{
	struct kernel_symbol s[] = { { .name = "finish_task_switch" }, { .name = "hrtimer_interrupt" } };
	if (!proc_exists("", "%s/kprobe_events", p->tracefs))
		return mem_dup("the kernel has no probes (CONFIG_KPROBE_EVENTS)");
	kernel_find_symbols(p->root, s, 2);
	if (!s[0].found || !s[1].found)
		return mem_printf("the kernel has no symbol %s", s[s[0].found].name);
	return define_readers(p, c, &(struct places){ "p", s[0].full, s[1].full });
}

static char *open_runtime(struct steal_probes *p, const struct counter *c)
{
	(void)c;
	if (!proc_exists("", "%s/events/sched/sched_stat_runtime/format", p->tracefs))
		return mem_dup("the kernel has no event sched_stat_runtime");
	char *value = kernel_config(p->root, "PARAVIRT_TIME_ACCOUNTING");
	char *why = !value ? mem_dup("unknown whether the kernel subtracts stolen time: its configuration is not readable")
		: *value != 'y' ? mem_dup("the kernel does not subtract stolen time (CONFIG_PARAVIRT_TIME_ACCOUNTING)") : NULL;
	free(value);
	if (!why)
		*ARRAY_PUSH(p->event, p->events, p->cap) = mem_dup("sched/sched_stat_runtime");
	return why;
}

static char *open_return_probe(struct steal_probes *p, const struct counter *c)
{
	struct kernel_symbol s = { .name = c->function };
	if (!proc_exists("", "%s/kprobe_events", p->tracefs))
		return mem_dup("the kernel has no probes (CONFIG_KPROBE_EVENTS)");
	kernel_find_symbols(p->root, &s, 1);
	if (!s.found)
		return mem_printf("the kernel has no symbol %s", s.name);
	char *group = probe_group(""), *name = mem_printf("%s/steal", group), *what = mem_printf("%s ret=$retval", s.full);
	char *why = define(p, "r", name, what);
	free(group);
	free(name);
	free(what);
	return why;
}

static const struct {
	const char *name;
	char *(*open)(struct steal_probes *p, const struct counter *c);
	const char *text, *resolution;
} sources[] = {
	[STEAL_EVENT_PROBES] = { "event_probes", open_event_probes,
		"the hypervisor's counter is read at each thread switch and timer by event probes "
		"(estimated cost: 0.3 to 0.6 us each)",
		"each thread switch and timer" },
	[STEAL_KERNEL_PROBES] = { "kernel_probes", open_kernel_probes,
		"the hypervisor's counter is read at each thread switch and timer by kernel probes "
		"(cost: not measured on hardware)",
		"each thread switch and timer" },
	[STEAL_RUNTIME] = { "sched_stat_runtime", open_runtime,
		"stolen time is the difference between wall time and sched_stat_runtime "
		"(one more event per thread switch and tick); recorded for other tools: index does not evaluate it",
		"sums over several ticks; the kernel's run queue clock may be one tick old at a switch" },
	[STEAL_RETURN_PROBE] = { "return_probe", open_return_probe,
		"the kernel's reading of the hypervisor's counter at ticks gives the total, but not the threads "
		"(one event per tick)",
		"totals only: one reading per tick" },
	[STEAL_NONE] = { "none", NULL, 
		"no source of stolen time: time taken by the host is invisible and counts as running", NULL },
};

bool steal_source_parse(const char *text, enum steal_source *from, enum steal_source *to)
{
	*from = 0;
	*to = STEAL_NONE;
	if (strcmp(text, "auto") == 0)
		return true;
	for (enum steal_source s = 0; s <= STEAL_NONE; s++) {
		if (strcmp(text, sources[s].name) == 0) {
			*from = *to = s;
			return true;
		}
	}
	return false;
}

/* Returns the reason why no source can work on this machine; NULL: none. */
static char *no_counter(const struct guest_platform *h, const struct counter *c, const char *machine)
{
	if (h->steal == OFFERED_NO)
		return mem_dup(h->why);
	if (!c && !h->is_guest)
		return mem_dup("this machine does not seem to be a virtual machine");
	return c ? NULL : mem_printf("no counter of stolen time is known for the hypervisor %s on %s", hypervisor_name(h->kind),
	                             machine);
}

static unsigned count_cpus(const char *tracefs)
{
	size_t n;
	unsigned cpus = 0;
	uint64_t number;
	char **name = proc_names("", "cpu", &n, "%s/per_cpu", tracefs);
	for (size_t i = 0; i < n; i++)
		if (proc_parse_number(name[i] + 3, 4095, &number) && number + 1 > cpus)
			cpus = (unsigned)number + 1;
	proc_names_free(name, n);
	return cpus;
}

void steal_probes_open(struct steal_probes *p, const char *root, const char *tracefs, const struct guest_platform *h,
                       enum steal_source from, enum steal_source to)
{
	struct utsname name;
	uname(&name);
	const struct counter *c = find_counter(name.machine, h->kind);
	*p = (struct steal_probes){ .source = STEAL_NONE, .root = root, .tracefs = mem_dup(tracefs), .offered = h->steal,
		.counter = c ? c->name : NULL, .cpus = count_cpus(tracefs) };
	for (enum steal_source s = 0; s < STEAL_NONE && p->source == STEAL_NONE; s++) {
		p->not_used[s] = s < from || s > to ? mem_dup("excluded by --steal") : no_counter(h, c, name.machine);
		if (!p->not_used[s])
			p->not_used[s] = sources[s].open(p, c);
		if (p->not_used[s])
			remove_events(p);
		else
			p->source = s;
	}
	p->per_cpu &= p->source <= STEAL_KERNEL_PROBES;
}

void steal_probes_filter(const struct steal_probes *p, const char *instance)
{
	for (size_t i = 0; p->per_cpu && i < p->events; i++) {
		const char *cpu = strstr(p->event[i], "_c");
		char *file = mem_printf("events/%s/filter", p->event[i]), *text;
		text = mem_printf("CPU == %lu", cpu ? strtoul(cpu + 2, NULL, 10) : 0);
		tracefs_append_line(instance, file, text);
		free(file);
		free(text);
	}
}

void steal_probes_close(struct steal_probes *p)
{
	remove_events(p);
	free(p->event);
	free(p->tracefs);
	for (size_t i = 0; i < STEAL_NONE; i++)
		free(p->not_used[i]);
	*p = (struct steal_probes){ .source = STEAL_NONE };
}

/* ---- descriptions */

void steal_probes_put(const struct steal_probes *p, struct yaml_out *o, int map)
{
	static const char *const offered[] = { "unknown", "yes", "no" };
	yaml_out_text(o, map, "source", sources[p->source].name);
	yaml_out_text(o, map, "counter", p->counter);
	yaml_out_text(o, map, "offered", offered[p->offered]);
	yaml_out_text(o, map, "resolution", sources[p->source].resolution);
	const int events = yaml_out_list(o, map, "events"), list = yaml_out_list(o, map, "not_used");
	for (size_t i = 0; i < p->events; i++)
		yaml_out_text(o, events, NULL, p->event[i]);
	for (size_t i = 0; i < STEAL_NONE; i++) {
		if (!p->not_used[i])
			continue;
		const int entry = yaml_out_map(o, list, NULL);
		yaml_out_text(o, entry, "source", sources[i].name);
		yaml_out_escaped(o, entry, "reason", p->not_used[i]);
	}
}

char *steal_probes_text(const struct steal_probes *p)
{
	char *text = mem_printf("%s: %s", sources[p->source].name, sources[p->source].text);
	const char *before = "";
	for (size_t i = 0; i < STEAL_NONE; i++) {
		if (!p->not_used[i] || strcmp(p->not_used[i], "excluded by --steal") == 0)
			continue;
		const bool is_same = strcmp(before, p->not_used[i]) == 0;
		char *longer = is_same ? mem_dup(text) : mem_printf("%s; not %s: %s", text, sources[i].name, p->not_used[i]);
		before = p->not_used[i];
		free(text);
		text = longer;
	}
	return text;
}
