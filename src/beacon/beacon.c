#include "beacon/beacon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#if defined __x86_64__
#include <cpuid.h>
#endif

#define NS_PER_S 1000000000LL
#define SLACK_SHARE 10            /* the kernel may join our wakeup with others within this part of the period */
#define LONGEST_PERIOD 2000000000 /* ns between looks at an idle guest */

/* ---- The hypercall -------------------------------------------------------------------------------------- */

#if defined __x86_64__

static bool vendor_is_amd(void)
{
	unsigned a, b, c, d;
	if (!__get_cpuid(0, &a, &b, &c, &d))
		return false;
	return b == signature_AMD_ebx || b == 0x6f677948; /* "AuthenticAMD", "HygonGenuine" */
}

static void hypercall_intel(uint32_t nr, uint64_t a0, uint64_t a1)
{
	uint64_t rax = nr;
	__asm__ volatile("vmcall" : "+a"(rax) : "b"(a0), "c"(a1), "d"(0UL), "S"(0UL) : "memory");
}

static void hypercall_amd(uint32_t nr, uint64_t a0, uint64_t a1)
{
	uint64_t rax = nr;
	__asm__ volatile("vmmcall" : "+a"(rax) : "b"(a0), "c"(a1), "d"(0UL), "S"(0UL) : "memory");
}

static bool in_virtual_machine(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(1, &a, &b, &c, &d) && (c >> 31 & 1);
}

static sigjmp_buf fault;

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(fault, 1);
}

/* Without a hypervisor that takes it, the instruction is a fault: try it once, caught. */
static bool hypercall_works(beacon_hypercall hypercall)
{
	static const int faults[] = { SIGILL, SIGSEGV, SIGBUS };
	struct sigaction sa = { .sa_handler = on_fault }, old[3];
	sigemptyset(&sa.sa_mask);
	for (int i = 0; i < 3; i++)
		sigaction(faults[i], &sa, &old[i]);
	volatile bool works = false;
	if (sigsetjmp(fault, 1) == 0) {
		hypercall(BEACON_HYPERCALL, 0, 0);
		works = true;
	}
	for (int i = 0; i < 3; i++)
		sigaction(faults[i], &old[i], NULL);
	return works;
}

/* What the hypervisor calls itself: "KVMKVMKVM", "TCGTCGTCGTCG" (QEMU without KVM), "Microsoft Hv" ... */
static void hypervisor_name(char name[13])
{
	unsigned a, r[3];
	__cpuid(0x40000000, a, r[0], r[1], r[2]);
	memcpy(name, r, 12);
	name[12] = '\0';
	for (char *c = name; *c; c++)
		*c = *c >= ' ' && *c <= '~' ? *c : '?';
}

static int find_hypercall(beacon_hypercall *hypercall, struct error *err)
{
	if (!in_virtual_machine())
		return error_set(err, STATUS_INPUT, "run it inside the guest; the host needs no beacon",
		                 "beacon: this is not a virtual machine");
	/* The second is for a guest that is told of another processor than it has. */
	const beacon_hypercall known[] = { hypercall_intel, hypercall_amd };
	const bool amd = vendor_is_amd();
	for (int i = 0; i < 2; i++) {
		*hypercall = known[amd ^ i];
		if (hypercall_works(*hypercall))
			return 0;
	}
	char name[13];
	hypervisor_name(name);
	return error_set(err, STATUS_INPUT, "KVM does; elsewhere use --sync containment, which needs no beacon",
	                 "beacon: the hypervisor '%s' takes no hypercalls from user space", name);
}

#else

static int find_hypercall(beacon_hypercall *hypercall, struct error *err)
{
	(void)hypercall;
	return error_set(err, STATUS_INPUT, "use --sync containment: it needs no beacon",
	                 "beacon: user space cannot issue hypercalls on this processor");
}

#endif

/* ---- The text ------------------------------------------------------------------------------------------- */

static int open_output(const char *output, struct error *err)
{
	static const char *const places[] = {
		"/proc/lttng-logger", "/sys/kernel/tracing/trace_marker", "/sys/kernel/debug/tracing/trace_marker",
	};
	if (output) {
		int fd = open(output, O_WRONLY | O_CLOEXEC);
		return fd >= 0 ? fd : error_system(err, "see --output", "%s", output);
	}
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		int fd = open(places[i], O_WRONLY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	return error_system(err, "load lttng-tracer, or mount tracefs, and run as root",
	                    "neither /proc/lttng-logger nor trace_marker can be written");
}

/* Returns 1 when it is in the trace, 0 when nothing is recorded at the moment: trace_marker then says that it is not
 * open for writing, LTTng takes the text and drops it. */
static int write_text(int fd, char end, uint32_t uid, uint64_t key, struct error *err)
{
	char text[64];
	int n = snprintf(text, sizeof text, "stealscope-sync %c %" PRIu32 " %" PRIu64, end, uid, key);
	if (write(fd, text, (size_t)n) == n)
		return 1;
	return errno == EBADF ? 0 : error_system(err, NULL, "beacon: writing to the kernel trace");
}

/* ---- Pulses --------------------------------------------------------------------------------------------- */

struct beacon {
	const struct beacon_options *o;
	beacon_hypercall hypercall;
	int fd;
	uint32_t uid;
	uint64_t key;
	int cpu;              /* the CPU of the next pulse */
	uint64_t busy;        /* jiffies of all CPUs at the last look */
};

static int beacon_open(struct beacon *b, const struct beacon_options *o, struct error *err)
{
	*b = (struct beacon){ .o = o, .hypercall = o->hypercall, .uid = o->uid, .fd = -1 };
	if (!b->hypercall && find_hypercall(&b->hypercall, err))
		return -1;
	while (b->uid == 0)
		if (getrandom(&b->uid, sizeof b->uid, 0) != (ssize_t)sizeof b->uid)
			return error_system(err, "give --uid", "beacon: no random number");
	/* Keys of another guest, and of another run in this one, are others; they fit into 63 bits. */
	b->key = (uint64_t)(b->uid & INT32_MAX) << 32 | 1;
	b->fd = open_output(o->output, err);
	return b->fd < 0 ? -1 : 0;
}

/* Returns what write_text() does.  What it costs does not depend on whether it is recorded: --measure relies on it. */
static int pulse(struct beacon *b, struct error *err)
{
	const int heard = write_text(b->fd, 'a', b->uid, b->key, err);
	if (heard < 0)
		return -1;
	b->hypercall(BEACON_HYPERCALL, b->key, b->uid);
	b->key += 2;
	return write_text(b->fd, 'd', b->uid, b->key - 1, err) < 0 ? -1 : heard;
}

/* Pulses go round the CPUs, so that every vCPU shows which host thread it is.  A CPU that is offline or not ours is
 * passed over by staying where we are. */
static void next_cpu(struct beacon *b)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((unsigned)b->cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
	b->cpu = (int)((b->cpu + 1) % (cpus > 0 && cpus <= CPU_SETSIZE ? cpus : 1));
}

/* Did any CPU do work since the last look?  One jiffy may be our own. */
static bool guest_was_busy(struct beacon *b)
{
	FILE *f = fopen("/proc/stat", "re");
	uint64_t user = 0, nice = 0, system = 0;
	int n = f ? fscanf(f, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64, &user, &nice, &system) : 0;
	if (f)
		fclose(f);
	if (n != 3)
		return true;
	uint64_t busy = user + nice + system, before = b->busy;
	b->busy = busy;
	return busy > before + 1;
}

static void sleep_until(int64_t t)
{
	struct timespec ts = { .tv_sec = t / NS_PER_S, .tv_nsec = t % NS_PER_S };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

int beacon_run(const struct beacon_options *o, const volatile int *stop, struct beacon_counts *counts,
               struct error *err)
{
	struct beacon b;
	*counts = (struct beacon_counts){ 0 };
	if (beacon_open(&b, o, err))
		return -1;
	counts->uid = b.uid;
	int64_t period = (int64_t)((double)NS_PER_S / o->rate), wait = period;
	prctl(PR_SET_TIMERSLACK, (unsigned long)(period / SLACK_SHARE));
	int64_t begin = now_ns();
	int rc = 0;
	while (rc >= 0 && !*stop && (o->duration == 0 || now_ns() - begin < o->duration)) {
		if (o->keep_idle || guest_was_busy(&b)) {
			next_cpu(&b);
			rc = pulse(&b, err);
			counts->pulses += rc == 1;
			counts->unheard += rc == 0;
			wait = period;
		} else {
			/* An idle guest is looked at ever more rarely: waking it costs its host a context switch. */
			counts->skipped++;
			wait = wait * 2 < LONGEST_PERIOD ? wait * 2 : wait;
		}
		sleep_until(now_ns() + wait);
	}
	close(b.fd);
	if (rc >= 0 && counts->unheard && !counts->pulses)
		return error_set(err, STATUS_INPUT, "start the recording first", "beacon: no pulse was recorded");
	return rc < 0 ? -1 : 0;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int64_t median(int64_t *v, unsigned n)
{
	qsort(v, n, sizeof *v, by_value);
	return v[n / 2];
}

int beacon_measure(const struct beacon_options *o, unsigned rounds, struct beacon_cost *cost, struct error *err)
{
	struct beacon b;
	if (rounds == 0)
		return error_set(err, STATUS_USAGE, "give at least 1", "--rounds: nothing to measure");
	if (beacon_open(&b, o, err))
		return -1;
	int64_t *write_cost = calloc(3 * (size_t)rounds, sizeof *write_cost);
	if (!write_cost) {
		close(b.fd);
		return error_system(err, NULL, "beacon");
	}
	int64_t *call_cost = write_cost + rounds, *pulse_cost = call_cost + rounds;
	int rc = 0;
	for (unsigned i = 0; rc >= 0 && i < rounds; i++) {
		int64_t t0 = now_ns();
		rc = write_text(b.fd, 'm', b.uid, i, err);
		int64_t t1 = now_ns();
		b.hypercall(BEACON_HYPERCALL, 0, b.uid);
		int64_t t2 = now_ns();
		rc = rc < 0 ? rc : pulse(&b, err);
		write_cost[i] = t1 - t0;
		call_cost[i] = t2 - t1;
		pulse_cost[i] = now_ns() - t2;
	}
	*cost = (struct beacon_cost){ median(write_cost, rounds), median(call_cost, rounds), median(pulse_cost, rounds) };
	free(write_cost);
	close(b.fd);
	return rc < 0 ? -1 : 0;
}
