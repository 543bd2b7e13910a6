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
#include "base/number.h"
#include "base/order.h"

#if defined __x86_64__
#include <cpuid.h>
#endif

#define SLACK_FRACTION 10            /* fraction of the period within which the kernel may delay a wakeup, to coalesce it
                                   * with others: 1/10 */
#define IDLE_CHECK_MAX 2000000000 /* maximum time between two checks of an idle guest, ns */

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

/* Tries the instruction once: without a hypervisor that handles it, it raises a signal, which is caught. */
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

/* Reads the hypervisor's signature: "KVMKVMKVM", "TCGTCGTCGTCG" (QEMU without KVM), "Microsoft Hv" ... */
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
	/* CPUID may report another vendor than that of the real CPU: try both instructions. */
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
	static const char *const paths[] = {
		"/proc/lttng-logger", "/sys/kernel/tracing/trace_marker", "/sys/kernel/debug/tracing/trace_marker",
	};
	if (output) {
		int fd = open(output, O_WRONLY | O_CLOEXEC);
		return fd >= 0 ? fd : error_system(err, "see --output", "%s", output);
	}
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		int fd = open(paths[i], O_WRONLY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	return error_system(err, "load lttng-tracer, or mount tracefs, and run as root",
	                    "neither /proc/lttng-logger nor trace_marker can be written");
}

/* Writes an event into the kernel trace. Returns 1 if it was recorded; 0 if tracing is off (trace_marker returns EBADF;
 * LTTng accepts and drops the text, which counts as recorded); -1 with *err. */
static int write_text(int fd, char end, uint32_t uid, uint64_t key, struct error *err)
{
	char text[64];
	int n = snprintf(text, sizeof text, "stealscope-sync %c %" PRIu32 " %" PRIu64, end, uid, key);
	if (write(fd, text, (size_t)n) == n)
		return 1;
	return errno == EBADF ? 0 : error_system(err, NULL, "beacon: cannot write to the kernel trace");
}

/* ---- Pulses --------------------------------------------------------------------------------------------- */

struct beacon {
	const struct beacon_options *o;
	beacon_hypercall hypercall;
	int fd;
	uint32_t uid;
	uint64_t key;
	int cpu;              /* CPU of the next pulse */
	uint64_t busy;        /* jiffies of all CPUs at the last check */
};

static int beacon_open(struct beacon *b, const struct beacon_options *o, struct error *err)
{
	*b = (struct beacon){ .o = o, .hypercall = o->hypercall, .uid = o->uid, .fd = -1 };
	if (!b->hypercall && find_hypercall(&b->hypercall, err))
		return -1;
	while (b->uid == 0)
		if (getrandom(&b->uid, sizeof b->uid, 0) != (ssize_t)sizeof b->uid)
			return error_system(err, "use --uid", "beacon: cannot draw a random number");
	/* The first key has the random uid, so keys differ between guests and runs; 63 bits. */
	b->key = (uint64_t)(b->uid & INT32_MAX) << 32 | 1;
	b->fd = open_output(o->output, err);
	return b->fd < 0 ? -1 : 0;
}

/* Sends one pulse. Returns the result of write_text(). The cost does not depend on whether the pulse is recorded:
 * --measure relies on that. */
static int send_pulse(struct beacon *b, struct error *err)
{
	const int traced = write_text(b->fd, 'a', b->uid, b->key, err);
	if (traced < 0)
		return -1;
	b->hypercall(BEACON_HYPERCALL, b->key, b->uid);
	b->key += 2;
	return write_text(b->fd, 'd', b->uid, b->key - 1, err) < 0 ? -1 : traced;
}

/* Moves to the next CPU: pulses rotate over the CPUs, so that the host thread of every vCPU becomes known. If a CPU is
 * unavailable, the beacon stays on the current one. */
static void next_cpu(struct beacon *b)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((unsigned)b->cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
	b->cpu = (int)((b->cpu + 1) % (cpus > 0 && cpus <= CPU_SETSIZE ? cpus : 1));
}

/* Returns true if any CPU worked since the last check. One jiffy may be the beacon's own. */
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
	prctl(PR_SET_TIMERSLACK, (unsigned long)(period / SLACK_FRACTION));
	int64_t begin = now_ns();
	int rc = 0;
	while (rc >= 0 && !*stop && (o->duration == 0 || now_ns() - begin < o->duration)) {
		if (o->keep_idle || guest_was_busy(&b)) {
			next_cpu(&b);
			rc = send_pulse(&b, err);
			counts->pulses += rc == 1;
			counts->not_traced += rc == 0;
			wait = period;
		} else {
			/* Checks of an idle guest become rarer, because each wakeup costs the host a context switch. */
			counts->skipped++;
			wait = wait * 2 < IDLE_CHECK_MAX ? wait * 2 : wait;
		}
		sleep_until(now_ns() + wait);
	}
	close(b.fd);
	if (rc >= 0 && counts->not_traced && !counts->pulses)
		return error_set(err, STATUS_INPUT, "start the recording first", "beacon: no pulse was recorded");
	return rc < 0 ? -1 : 0;
}

static int64_t median_cost(int64_t *v, unsigned n)
{
	qsort(v, n, sizeof *v, order_int64);
	return v[n / 2];
}

int beacon_measure(const struct beacon_options *o, unsigned rounds, struct beacon_cost *cost, struct error *err)
{
	struct beacon b;
	if (rounds == 0)
		return error_set(err, STATUS_USAGE, "use at least 1", "--rounds: nothing to measure");
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
		rc = rc < 0 ? rc : send_pulse(&b, err);
		write_cost[i] = t1 - t0;
		call_cost[i] = t2 - t1;
		pulse_cost[i] = now_ns() - t2;
	}
	*cost = (struct beacon_cost){ median_cost(write_cost, rounds), median_cost(call_cost, rounds),
	                              median_cost(pulse_cost, rounds) };
	free(write_cost);
	close(b.fd);
	return rc < 0 ? -1 : 0;
}
