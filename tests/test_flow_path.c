/* flow/: the critical path through wakers, vCPUs and machines. */
#include "test.h"

#include "flow_world.h"

#define V "/Virtual Machines/A/CPUs/CPU0/"
#define A "/Virtual Machines/A/Threads/"
#define H "/Host/Threads/"

/* "10-29 running A/5 work wake; 30-39 preempting host/42 io <host/99 hog> wake": the pieces. */
static void check(const struct world *w, const char *whose, int64_t from, int64_t to, const char *want)
{
	struct path p;
	struct error err = ERROR_INIT;
	char text[2000] = "";
	struct subject s = world_subject(w, whose);
	assert_int_equal(path_of(&w->topo, &s, from, to, &p, &err), 0);
	int64_t next = p.start, sum = 0, unknown = 0;
	for (size_t i = 0; i < p.pieces; i++) {
		const struct path_piece *e = &p.piece[i];
		size_t used = strlen(text);
		assert_int_equal(e->start, next);
		next = e->end + 1;
		unknown += e->who.kind == FLOW_UNKNOWN ? e->end - e->start + 1 : 0;
		char thief[80] = "", near[24] = "";
		if (e->thief.system >= 0)
			snprintf(thief, sizeof thief, " <%s/%d %s>", w->topo.machine[e->thief.system].name, e->thief.tid,
			         p.name[e->thief.name]);
		if (e->evidence >= 0)
			snprintf(near, sizeof near, " ~%d", (int)e->evidence);
		snprintf(text + used, sizeof text - used, "%s%d-%d %s %s/%d %s%s %s%s", i ? "; " : "", (int)e->start, (int)e->end,
		         e->who.kind == FLOW_WAITING ? PATH_WAIT : flow_kind_name[e->who.kind], w->topo.machine[e->who.system].name,
		         e->who.tid, p.name[e->who.name], thief, path_edge_name[e->edge], near);
	}
	assert_int_equal(next, p.end + 1);
	for (size_t i = 0; i < p.sums; i++)
		sum += p.sum[i].duration;
	assert_int_equal(sum, p.end - p.start + 1);
	assert_int_equal(p.unknown, unknown);
	assert_string_equal(text, want);
	path_release(&p);
}

/* A vCPU (host thread 40), its VM's I/O thread 41, and a hog that shares CPU1 with it. */
static void make(struct world *w, const char *woken_in, const char *on_cpu0)
{
	world_open(w);
	world_row(w, "/Host/CPUs/CPU0/Current Thread", on_cpu0);
	world_row(w, "/Host/CPUs/CPU1/Current Thread", "0 41; 10 0; 28 99; 50 41; 70 99");
	world_row(w, H "40/Status", "0 RUNNING; 30 BLOCKED; 70 PREEMPTED; 75 RUNNING");
	world_row(w, H "40/CPU", "0 0");
	world_row(w, H "40/Name", "0 kvm");
	world_row(w, H "40/PID", "0 39");
	world_row(w, H "40/Woken By", "70 host/41");
	world_row(w, H "40/Woken In", "70 thread");
	world_row(w, H "41/Status", "0 RUNNING; 10 BLOCKED; 28 PREEMPTED; 50 RUNNING; 70 BLOCKED");
	world_row(w, H "41/CPU", "0 1");
	world_row(w, H "41/Name", "0 io");
	world_row(w, H "41/PID", "0 39");
	world_row(w, H "41/Woken By", "25 host/40");
	world_row(w, H "41/Woken In", "28 thread");
	world_row(w, H "99/Status", "0 PREEMPTED; 28 RUNNING; 50 PREEMPTED; 70 RUNNING");
	world_row(w, H "99/CPU", "0 1");
	world_row(w, H "99/Name", "0 hog");
	world_row(w, V "Status", "0 RUNNING; 30 IDLE; 70 WAKING; 75 IDLE; 85 RUNNING");
	world_row(w, V "Host Thread", "0 40");
	world_row(w, V "pCPU", "0 0");
	world_row(w, V "Current Thread", "0 5; 20 6; 27 0; 85 5");
	world_row(w, V "Interrupt", "0 -; 80 irq/9-disk; 82 -");
	world_row(w, A "5/Status", "0 RUNNING; 20 BLOCKED; 81 PREEMPTED; 85 RUNNING");
	world_row(w, A "5/CPU", "0 0");
	world_row(w, A "5/Name", "0 work");
	world_row(w, A "5/Woken By", "81 A/0");
	world_row(w, A "5/Woken In", woken_in);
	world_row(w, A "6/Status", "0 BLOCKED; 15 PREEMPTED; 20 RUNNING; 27 BLOCKED");
	world_row(w, A "6/CPU", "0 0");
	world_row(w, A "6/Name", "0 flush");
	world_row(w, A "6/Woken By", "15 A/5");
	world_row(w, A "6/Woken In", "15 thread");
	world_close(w, 0, 99);
}

/* A thread sleeps for a disk: another one of its guest asks for it, the I/O thread waits for the hog, does it, and raises
 * the interrupt, which the idle vCPU has to be woken for. */
static void test_disk(void **state)
{
	(void)state;
	struct world w;
	make(&w, "81 irq/9-disk", "0 40; 30 0; 75 40");
	check(&w, "A/5", 0, 99,
	      "0-19 running A/5 work start; 20-24 running A/6 flush request; 25-27 idle-cpu host/41 io ipi; "
	      "28-49 preempting host/41 io <host/99 hog> inject ~11; 50-69 running host/41 io inject ~11; "
	      "70-80 idle-cpu A/5 work inject ~11; "
	      "81-84 idle-cpu A/5 work start; 85-99 running A/5 work start");
	world_release(&w);
}

/* Woken at 25 for CPU1, which takes notice at 28: until then it is the hog, or a handler, that has that CPU, as long as it is
 * known which one it is. */
static void test_on_its_way(void **state)
{
	(void)state;
	for (int placed = 0; placed < 2; placed++) {
		struct world w;
		world_open(&w);
		world_row(&w, "/Host/CPUs/CPU0/Current Thread", "0 40; 60 0");
		world_row(&w, "/Host/CPUs/CPU1/Current Thread", "0 41; 10 99; 50 41");
		world_row(&w, "/Host/CPUs/CPU1/Interrupt", "0 -; 26 timer; 27 -");
		world_row(&w, H "40/Status", "0 RUNNING; 60 BLOCKED");
		world_row(&w, H "40/Name", "0 kvm");
		world_row(&w, H "41/Status", "0 RUNNING; 10 BLOCKED; 28 PREEMPTED; 50 RUNNING");
		world_row(&w, H "41/CPU", placed ? "0 1" : "0 -; 28 -; 50 1");
		world_row(&w, H "41/Name", "0 io");
		world_row(&w, H "41/Woken By", "25 host/40");
		world_row(&w, H "41/Woken In", "28 thread");
		world_row(&w, H "99/Name", "0 hog");
		world_close(&w, 0, 99);
		check(&w, "host/41", 10, 60,
		      placed ? "10-24 running host/40 kvm wake; 25-25 preempting host/41 io <host/99 hog> ipi; "
		               "26-26 irq host/41 io <host/-1 timer> ipi; 27-27 preempting host/41 io <host/99 hog> ipi; "
		               "28-49 preempting host/41 io <host/99 hog> start; 50-60 running host/41 io start"
		             : "10-24 running host/40 kvm wake; 25-27 unknown host/41 io ipi; 28-49 unknown host/41 io start; "
		               "50-60 running host/41 io start");
		world_release(&w);
	}
}

/* At 25 the disk is asked for by a vCPU whose guest is traced no longer: of the time before that ended it is not said whom
 * it had, who may have had to do with it or not.  Where the guest was never traced it is the vCPU all along. */
static void test_no_longer_traced(void **state)
{
	(void)state;
	for (int once = 0; once < 2; once++) {
		struct world w;
		world_open(&w);
		world_row(&w, "/Host/CPUs/CPU0/Current Thread", "0 40");
		world_row(&w, H "40/Status", "0 RUNNING");
		world_row(&w, H "40/CPU", "0 0");
		world_row(&w, H "41/Status", "0 BLOCKED; 25 RUNNING");
		world_row(&w, H "41/Name", "0 io");
		world_row(&w, H "41/Woken By", "25 host/40");
		world_row(&w, H "41/Woken In", "25 thread");
		world_row(&w, V "Status", "0 RUNNING");
		world_row(&w, V "Host Thread", "0 40");
		world_row(&w, V "pCPU", "0 0");
		if (once)
			world_row(&w, V "Current Thread", "0 5; 20 -");
		if (once)
			world_row(&w, A "5/Status", "0 RUNNING; 20 -");
		world_close(&w, 0, 99);
		check(&w, "host/41", 0, 29, once ? "0-19 unknown A/-1 vCPU0 start; 20-24 running A/-1 vCPU0 request; "
		                                   "25-29 running host/41 io start"
		                                 : "0-24 running A/-1 vCPU0 request; 25-29 running host/41 io start");
		world_release(&w);
	}
}

/* Who slept mostly for somebody is told for whom, and whose fault that was; for a timer nobody is named. */
static void test_explained(void **state)
{
	(void)state;
	struct world w;
	struct error err = ERROR_INIT;
	char *text;
	make(&w, "81 irq/9-disk", "0 40; 30 0; 75 40");
	struct subject s = world_subject(&w, "A/5");
	assert_int_equal(explain_window(&w.topo, &s, 0, 99, &text, &err), 0);
	assert_non_null(strstr(text, "What it slept for was mostly the doing of host/41 io: 45 ns, 22 ns of that because host/99 hog "
	                             "had its CPU; A/6 flush: 5 ns; of the 50 ns of all who led to it 42 ns go by what was nearest "
	                             "in time, the rest by recorded wakeups.\n"));
	assert_non_null(strstr(text, "Look next at host/99 hog: it had the CPU of host/41 io, which was waited for; keep the two "
	                             "apart (stealscope flow FILE host/99).\n"));
	assert_non_null(strstr(text, "\nWhat delayed it most while it wanted to run was waking up"));
	assert_null(strstr(text, "for locks"));
	free(text);
	world_release(&w);
	make(&w, "81 irq/9-disk", "0 40; 30 0; 70 99; 75 40");  /* the hog has the vCPU's CPU, too, when that is woken */
	s = world_subject(&w, "A/5");
	assert_int_equal(explain_window(&w.topo, &s, 0, 99, &text, &err), 0);
	assert_non_null(strstr(text, "22 ns of that because host/99 hog had its CPU; A/6 flush: 5 ns; of the 50 ns of all who led to "
	                             "it 42 ns go by what was nearest in time, the rest by recorded wakeups.\nFor 11 ns of its "
	                             "sleep it was being woken; for 5 ns of that host/99 hog had its vCPU's CPU.\n"));
	free(text);
	world_release(&w);
	make(&w, "81 timer", "0 40; 30 0; 75 40");
	s = world_subject(&w, "A/5");
	assert_int_equal(explain_window(&w.topo, &s, 0, 99, &text, &err), 0);
	assert_null(strstr(text, "the doing of"));
	assert_null(strstr(text, "which was waited for"));
	assert_non_null(strstr(text, "\nWhat delayed it most was waking up"));
	free(text);
	world_release(&w);
}

/* Of 80 ns of sleep 10 were for somebody, and the rest for a timer. */
static void test_explained_in_part(void **state)
{
	(void)state;
	struct world w;
	struct error err = ERROR_INIT;
	char *text;
	world_open(&w);
	world_row(&w, "/Host/CPUs/CPU0/Current Thread", "0 40; 84 99; 90 40");
	world_row(&w, "/Host/CPUs/CPU1/Current Thread", "0 41; 10 0; 80 41; 82 0; 92 41");
	world_row(&w, H "40/Status", "0 RUNNING; 84 PREEMPTED; 90 RUNNING");
	world_row(&w, H "40/CPU", "0 0");
	world_row(&w, H "40/Name", "0 server");
	world_row(&w, H "41/Status", "0 RUNNING; 10 BLOCKED; 80 RUNNING; 82 BLOCKED; 92 RUNNING");
	world_row(&w, H "41/CPU", "0 1");
	world_row(&w, H "41/Name", "0 client");
	world_row(&w, H "41/Woken By", "80 host/0; 92 host/40");
	world_row(&w, H "41/Woken In", "80 timer; 92 thread");
	world_row(&w, H "99/Name", "0 hog");
	world_close(&w, 0, 99);
	struct subject s = world_subject(&w, "host/41");
	assert_int_equal(explain_window(&w.topo, &s, 0, 99, &text, &err), 0);
	assert_non_null(strstr(text, "What it slept for was in part the doing of host/40 server: 10 ns, 6 ns of that because host/99 "
	                             "hog had its CPU; recorded wakeups tell so.\n"));
	free(text);
	world_release(&w);
}

/* A timer is nobody's fault, whoever else woke the vCPU; and what nothing tells is unknown. */
static void test_ends(void **state)
{
	(void)state;
	struct world w;
	make(&w, "81 timer", "0 40; 30 0; 75 40");
	check(&w, "A/5", 30, 79, "30-79 wait A/-1 timer irq");
	world_release(&w);
	make(&w, "81 softirq/9-RCU", "0 40; 30 0; 75 40");
	check(&w, "A/5", 60, 69, "60-69 unknown A/5 work start");
	world_release(&w);
	make(&w, "0 -", "0 40; 30 0; 75 40");
	check(&w, "A/5", 60, 69, "60-69 unknown A/5 work start");
	world_release(&w);
	make(&w, "81 thread", "0 40; 30 0; 75 40");  /* the idle task woke it */
	check(&w, "A/5", 60, 69, "60-69 unknown A/5 work start");
	world_release(&w);
}

/* vCPU 0 of A is the host's thread 40, whose CPU a hog has from 30 to 59; A/5 is what is asked about. */
static void hog_takes(struct world *w)
{
	world_row(w, "/Host/CPUs/CPU0/Current Thread", "0 40; 30 99; 60 40");
	world_row(w, H "40/Status", "0 RUNNING; 30 PREEMPTED; 60 RUNNING");
	world_row(w, H "40/CPU", "0 0");
	world_row(w, H "99/Status", "0 PREEMPTED; 30 RUNNING; 60 PREEMPTED");
	world_row(w, H "99/Name", "0 hog");
	world_row(w, V "Host Thread", "0 40");
	world_row(w, V "pCPU", "0 0");
	world_row(w, A "5/Name", "0 work");
}

/* What an idle guest's vCPU is late for is late for whoever is being woken, and what it takes it takes itself. */
static void test_no_idle_task(void **state)
{
	(void)state;
	struct world w;
	make(&w, "81 irq/9-disk", "0 40; 30 0; 70 99; 75 40");
	check(&w, "A/5", 70, 84, "70-74 preempting A/5 work <host/99 hog> inject ~11; 75-80 idle-cpu A/5 work inject ~11; "
	                         "81-84 idle-cpu A/5 work start");
	world_release(&w);
	world_open(&w);
	hog_takes(&w);
	world_row(&w, V "Status", "0 RUNNING; 30 PREEMPTED; 60 RUNNING");
	world_row(&w, V "Current Thread", "0 5");
	world_row(&w, A "5/Status", "0 RUNNING; 30 VIRT_PREEMPTED; 60 RUNNING");
	world_row(&w, A "5/CPU", "0 0");
	world_row(&w, "/Virtual Machines/B/CPUs/CPU1/Host Thread", "0 99");
	world_row(&w, "/Virtual Machines/B/CPUs/CPU1/pCPU", "0 0");
	world_row(&w, "/Virtual Machines/B/CPUs/CPU1/Status", "0 PREEMPTED; 30 RUNNING; 40 IDLE; 60 PREEMPTED");
	world_row(&w, "/Virtual Machines/B/CPUs/CPU1/Current Thread", "0 7; 40 0");
	world_row(&w, "/Virtual Machines/B/Threads/7/Name", "0 cc");
	world_close(&w, 0, 99);
	check(&w, "A/5", 20, 79, "20-29 running A/5 work start; 30-39 preempting A/5 work <B/7 cc> start; "
	                         "40-59 preempting A/5 work <B/-1 vCPU1> start; 60-79 running A/5 work start");
	world_release(&w);
}

/* A timer interrupts A/6 at 28, and its handler, which loses its CPU to the hog, wakes A/5 at 65: it is A/5 that is late. */
static void test_handler_held_up(void **state)
{
	(void)state;
	for (int held = 0; held < 2; held++) {
		struct world w;
		world_open(&w);
		hog_takes(&w);
		world_row(&w, V "Status", held ? "0 RUNNING; 30 PREEMPTED; 60 RUNNING" : "0 RUNNING");
		world_row(&w, V "Current Thread", "0 6");
		world_row(&w, V "Interrupt", "0 -; 28 timer; 67 -");
		world_row(&w, "/Virtual Machines/A/CPUs/CPU1/Host Thread", "0 50");
		world_row(&w, A "5/Status", "0 RUNNING; 10 BLOCKED; 65 RUNNING");
		world_row(&w, A "5/CPU", "0 1");
		world_row(&w, A "5/Woken By", "65 A/6");
		world_row(&w, A "5/Woken In", "65 timer");
		world_row(&w, A "6/Name", "0 other");
		world_close(&w, 0, 99);
		check(&w, "A/5", 10, 69, held ? "10-27 wait A/-1 timer irq; 28-29 irq A/-1 timer inject; "
		                                "30-59 preempting A/5 work <host/99 hog> inject; 60-64 irq A/-1 timer inject; "
		                                "65-69 running A/5 work start"
		                              : "10-64 wait A/-1 timer irq; 65-69 running A/5 work start");
		world_release(&w);
	}
}

/* A/6 runs on that vCPU; A/5 is on CPU1, which is the host's thread 50. */
static void other_runs(struct world *w)
{
	world_row(w, V "Status", "0 RUNNING; 30 PREEMPTED; 60 RUNNING");
	world_row(w, V "Current Thread", "0 6");
	world_row(w, "/Virtual Machines/A/CPUs/CPU1/Host Thread", "0 50");
	world_row(w, A "5/CPU", "0 1");
	world_row(w, A "6/Status", "0 RUNNING; 30 VIRT_PREEMPTED; 60 RUNNING");
	world_row(w, A "6/CPU", "0 0");
	world_row(w, A "6/Name", "0 other");
}

/* The host took CPU0 from the vCPU's thread as its guest went idle; then a thread of the guest was woken. */
static void test_idle_and_out(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	hog_takes(&w);
	world_row(&w, V "Status", "0 RUNNING; 20 IDLE; 70 RUNNING");
	world_row(&w, V "Current Thread", "0 5; 20 0; 70 5");
	world_row(&w, A "5/Status", "0 RUNNING; 20 BLOCKED; 25 PREEMPTED; 70 RUNNING");
	world_row(&w, A "5/CPU", "0 0");
	world_close(&w, 0, 99);
	check(&w, "A/5", 25, 99, "25-29 idle-cpu A/5 work start; 30-59 preempting A/5 work <host/99 hog> start; "
	                         "60-69 idle-cpu A/5 work start; 70-99 running A/5 work start");
	check(&w, "A/CPU0", 25, 69, "25-29 running A/-1 vCPU0 start; 30-59 preempting A/-1 vCPU0 <host/99 hog> start; "
	                            "60-69 running A/-1 vCPU0 start");
	world_release(&w);
}

/* An interrupt that the I/O thread raised while the vCPU was out, before anybody slept for it. */
static void test_pending(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	hog_takes(&w);
	other_runs(&w);
	world_row(&w, "/Host/CPUs/CPU1/Current Thread", "0 50; 32 41; 36 50");
	world_row(&w, H "40/PID", "0 39");
	world_row(&w, H "41/Status", "0 BLOCKED; 32 RUNNING; 36 BLOCKED");
	world_row(&w, H "41/PID", "0 39");
	world_row(&w, H "50/Status", "0 RUNNING; 32 PREEMPTED; 36 RUNNING");
	world_row(&w, H "50/PID", "0 39");
	world_row(&w, V "Interrupt", "0 -; 65 irq/9-disk; 72 -");
	world_row(&w, "/Virtual Machines/A/CPUs/CPU1/Status", "0 RUNNING; 40 IDLE; 70 RUNNING");
	world_row(&w, "/Virtual Machines/A/CPUs/CPU1/Current Thread", "0 5; 40 0; 70 5");
	world_row(&w, A "5/Status", "0 RUNNING; 40 BLOCKED; 70 RUNNING");
	world_row(&w, A "5/Woken By", "70 A/6");
	world_row(&w, A "5/Woken In", "70 irq/9-disk");
	world_close(&w, 0, 99);
	check(&w, "A/5", 40, 79, "40-59 preempting A/6 other <host/99 hog> inject ~35; 60-64 running A/6 other inject ~35; "
	                         "65-69 irq A/-1 irq/9-disk inject ~35; 70-79 running A/5 work start");
	world_release(&w);
}

/* The same, 1000 times as long, and beside the raiser another thread of the VM's process ran.  The guest, which keeps
 * interrupts off for 200 us at most, was left when it had the CPU before: it may be that one's interrupt, or was raised
 * shortly before, which nothing tells. */
static void two_ran(const char *other, const char *want)
{
	struct world w;
	world_open(&w);
	world_row(&w, "/Host/CPUs/CPU0/Current Thread", "0 40; 900000 99; 1600000 40");
	world_row(&w, H "40/Status", "0 RUNNING; 900000 PREEMPTED; 1600000 RUNNING");
	world_row(&w, H "40/CPU", "0 0");
	world_row(&w, H "40/PID", "0 39");
	world_row(&w, H "41/Status", "0 BLOCKED; 880000 RUNNING; 895000 BLOCKED");
	world_row(&w, H "41/PID", "0 39");
	world_row(&w, H "42/Status", other);
	world_row(&w, H "42/PID", "0 39");
	world_row(&w, H "99/Status", "0 PREEMPTED; 900000 RUNNING; 1600000 PREEMPTED");
	world_row(&w, V "Status", "0 RUNNING; 890000 VMM; 900000 PREEMPTED; 1600000 RUNNING");
	world_row(&w, V "Host Thread", "0 40");
	world_row(&w, V "Current Thread", "0 6");
	world_row(&w, V "Interrupt", "0 -; 1650000 irq/9-disk; 1660000 -");
	world_row(&w, A "5/Status", "0 RUNNING; 500000 BLOCKED; 1655000 RUNNING");
	world_row(&w, A "5/CPU", "0 0");
	world_row(&w, A "5/Name", "0 work");
	world_row(&w, A "5/Woken By", "1655000 A/6");
	world_row(&w, A "5/Woken In", "1655000 irq/9-disk");
	world_row(&w, A "6/Name", "0 other");
	world_close(&w, 0, 1700000);
	check(&w, "A/5", 500000, 1654999, want);
	world_release(&w);
}

static void test_pending_for_two(void **state)
{
	(void)state;
	two_ran("0 BLOCKED; 1200000 RUNNING; 1300000 BLOCKED", "500000-1654999 unknown A/5 work start");
	two_ran("0 BLOCKED; 600000 RUNNING; 650000 BLOCKED",
	        "500000-879999 unknown host/41  start; 880000-894998 running host/41  inject ~760001; "
	        "894999-899999 hypervisor A/6 other inject ~760001; 900000-1599999 preempting A/6 other <host/99 > inject ~760001; "
	        "1600000-1649999 running A/6 other inject ~760001; 1650000-1654999 irq A/-1 irq/9-disk inject ~760001");
}

/* host/43, which is known to serve irq/8-net, raised that until 75, when host/41 had begun to wake the halted vCPU for
 * another device: what is left of the halt is the wakeup on its way, and none of host/41's doing. */
static void test_woken_for_another(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_row(&w, "/Host/CPUs/CPU0/Current Thread", "0 40; 20 0; 30 40; 60 0; 80 40");
	world_row(&w, H "40/Status", "0 RUNNING; 20 BLOCKED; 30 RUNNING; 60 BLOCKED; 80 RUNNING");
	world_row(&w, H "40/Woken By", "30 host/43; 80 host/41");
	world_row(&w, H "40/Woken In", "30 thread");
	world_row(&w, H "40/CPU", "0 0");
	world_row(&w, H "40/PID", "0 39");
	world_row(&w, H "41/Status", "0 BLOCKED; 72 RUNNING; 95 BLOCKED");
	world_row(&w, H "41/PID", "0 39");
	world_row(&w, H "43/Status", "0 RUNNING; 76 BLOCKED");
	world_row(&w, H "43/PID", "0 39");
	world_row(&w, V "Host Thread", "0 40");
	world_row(&w, V "pCPU", "0 0");
	world_row(&w, V "Status", "0 RUNNING; 20 IDLE; 30 RUNNING; 60 IDLE; 80 RUNNING");
	world_row(&w, V "Current Thread", "0 6; 20 0; 33 6; 60 0; 85 6");
	world_row(&w, V "Interrupt", "0 -; 31 irq/8-net; 32 -; 82 irq/9-disk; 84 -; 90 irq/8-net; 93 -");
	world_row(&w, A "5/Status", "0 RUNNING; 50 BLOCKED; 91 RUNNING");
	world_row(&w, A "5/CPU", "0 0");
	world_row(&w, A "5/Name", "0 work");
	world_row(&w, A "5/Woken By", "91 A/6");
	world_row(&w, A "5/Woken In", "91 irq/8-net");
	world_row(&w, A "6/Name", "0 other");
	world_close(&w, 0, 99);
	check(&w, "A/5", 50, 90,
	      "50-74 running host/43  inject ~16; 75-79 unknown A/-1 vCPU0 start; 80-81 idle-cpu A/5 work inject ~16; "
	      "82-83 irq A/-1 irq/9-disk inject ~16; 84-84 idle-cpu A/5 work inject ~16; "
	      "85-89 running A/6 other inject ~16; 90-90 irq A/-1 irq/8-net inject ~16");
	world_release(&w);
}

/* A/5 waits on CPU1: it spins in a spin lock, while A/6 has no pCPU for most of that; then it sleeps, and A/6 wakes it. */
static void test_locks(void **state)
{
	(void)state;
	struct world w;
	struct lock_list l;
	struct error err = ERROR_INIT;
	world_open(&w);
	hog_takes(&w);
	other_runs(&w);
	world_row(&w, H "50/Status", "0 RUNNING");
	world_row(&w, "/Virtual Machines/A/CPUs/CPU1/Status",
	          "0 RUNNING; 5 VMM; 6 RUNNING; 29 VMM; 30 RUNNING; 48 VMM; 49 RUNNING; 71 IDLE; 80 RUNNING");
	world_row(&w, "/Virtual Machines/A/CPUs/CPU1/Current Thread", "0 5; 71 0; 80 5");
	world_row(&w, "/Virtual Machines/A/CPUs/CPU1/Exit", "0 hlt; 5 pause; 12 intr; 29 pause; 59 hlt");
	world_row(&w, A "5/Status", "0 RUNNING; 71 BLOCKED; 80 RUNNING");
	world_row(&w, A "5/Lock", "0 -; 21 spinlock; 61 -; 71 mutex; 80 -");
	world_row(&w, A "5/Woken By", "80 A/6");
	world_row(&w, A "5/Woken In", "80 thread");
	world_close(&w, 0, 99);
	assert_true(locks_are_named(&w.topo, 1));
	assert_int_equal(locks_of(&w.topo, NULL, 0, 99, &l, &err), 0);
	assert_int_equal(l.waits, 3);
	static const struct { int start, end; const char *kind; bool spins; double suspicion; int taken; } want[] = {
		{ 21, 60, "spinlock", true, 30.0 / 40, 30 }, { 29, 48, "pause", true, 19.0 / 20, 19 },
		{ 71, 79, "mutex", false, 0, 0 },
	};
	for (size_t i = 0; i < l.waits; i++) {
		const struct lock_wait *got = &l.wait[i];
		assert_int_equal(got->start, want[i].start);
		assert_int_equal(got->end, want[i].end);
		assert_string_equal(l.name[got->kind], want[i].kind);
		assert_int_equal(got->spins, want[i].spins);
		assert_true(got->suspicion > want[i].suspicion - 1e-9 && got->suspicion < want[i].suspicion + 1e-9);
		assert_int_equal(got->taken, want[i].taken);
		assert_string_equal(l.name[got->waiter.name], "work");
		assert_int_equal(got->holder.tid, 6);
		assert_string_equal(l.name[got->holder.name], "other");
		assert_string_equal(got->thief.system < 0 ? "" : l.name[got->thief.name], want[i].taken ? "hog" : "");
	}
	struct lock_list again;
	struct inquiry *q = locks_open(&w.topo, NULL, 0, 99);
	int steps = 1;
	while (inquiry_step(q, 1, &err) == 0)  /* a wait at a time */
		steps++;
	locks_take(q, &again);
	inquiry_close(q);
	assert_true(steps > 3 && again.waits == l.waits);
	for (size_t i = 0; i < l.waits; i++)
		assert_true(again.wait[i].start == l.wait[i].start && again.wait[i].taken == l.wait[i].taken);
	locks_release(&again);
	locks_release(&l);
	assert_int_equal(locks_of(&w.topo, NULL, 21, 29, &l, &err), 0);
	assert_int_equal(l.waits, 1);  /* the holder ran: nobody is suspected */
	assert_int_equal(l.wait[0].holder.system, -1);
	locks_release(&l);
	world_release(&w);
}

/* A/5 spins while another machine's vCPU, whose guest idles, has the pCPU of A/6's: it is that vCPU that took it. */
static void test_idle_thief_of_a_spinner(void **state)
{
	(void)state;
	struct world w;
	struct lock_list l;
	struct error err = ERROR_INIT;
	world_open(&w);
	hog_takes(&w);
	other_runs(&w);
	world_row(&w, H "50/Status", "0 RUNNING");
	world_row(&w, "/Virtual Machines/A/CPUs/CPU1/Status", "0 RUNNING");
	world_row(&w, "/Virtual Machines/A/CPUs/CPU1/Current Thread", "0 5");
	world_row(&w, A "5/Status", "0 RUNNING");
	world_row(&w, A "5/Lock", "0 -; 28 spinlock; 61 -");
	world_row(&w, "/Virtual Machines/B/CPUs/CPU1/Host Thread", "0 99");
	world_row(&w, "/Virtual Machines/B/CPUs/CPU1/pCPU", "0 0");
	world_row(&w, "/Virtual Machines/B/CPUs/CPU1/Status", "0 PREEMPTED; 30 IDLE; 60 PREEMPTED");
	world_row(&w, "/Virtual Machines/B/CPUs/CPU1/Current Thread", "0 0");
	world_close(&w, 0, 99);
	assert_int_equal(locks_of(&w.topo, NULL, 0, 99, &l, &err), 0);
	assert_int_equal(l.waits, 1);
	assert_int_equal(l.wait[0].holder.tid, 6);
	assert_int_equal(l.wait[0].taken, 30);
	assert_string_equal(w.topo.machine[l.wait[0].thief.system].name, "B");
	assert_int_equal(l.wait[0].thief.tid, -1);
	assert_string_equal(l.name[l.wait[0].thief.name], "vCPU1");
	locks_release(&l);
	world_release(&w);
}

/* A/6 sleeps in a mutex until A/5 gives it away at 40, while a hog has its vCPU's CPU; then A/5 sleeps in one that A/6 has,
 * whose vCPU is kept from running, and is woken when that is over. */
static void test_locks_own_loss(void **state)
{
	(void)state;
	struct world w;
	struct lock_list l;
	struct error err = ERROR_INIT;
	world_open(&w);
	world_row(&w, "/Host/CPUs/CPU0/Current Thread", "0 40; 30 99; 60 40; 130 99; 160 40");
	world_row(&w, H "40/Status", "0 RUNNING; 30 PREEMPTED; 60 RUNNING; 130 PREEMPTED; 160 RUNNING");
	world_row(&w, H "40/CPU", "0 0");
	world_row(&w, H "99/Name", "0 hog");
	world_row(&w, H "50/Status", "0 RUNNING");
	world_row(&w, V "Host Thread", "0 40");
	world_row(&w, V "pCPU", "0 0");
	world_row(&w, V "Status", "0 RUNNING; 30 PREEMPTED; 60 RUNNING; 130 PREEMPTED; 160 RUNNING");
	world_row(&w, V "Current Thread", "0 6; 10 7; 60 6");
	world_row(&w, "/Virtual Machines/A/CPUs/CPU1/Host Thread", "0 50");
	world_row(&w, "/Virtual Machines/A/CPUs/CPU1/Status", "0 RUNNING");
	world_row(&w, "/Virtual Machines/A/CPUs/CPU1/Current Thread", "0 5; 100 7; 166 5");
	world_row(&w, A "5/Status", "0 RUNNING; 100 BLOCKED; 166 RUNNING");
	world_row(&w, A "5/CPU", "0 1");
	world_row(&w, A "5/Lock", "0 -; 100 futex; 170 -");
	world_row(&w, A "5/Woken By", "165 A/6");
	world_row(&w, A "5/Woken In", "165 thread");
	world_row(&w, A "6/Status", "0 RUNNING; 10 BLOCKED; 60 RUNNING; 130 VIRT_PREEMPTED; 160 RUNNING");
	world_row(&w, A "6/CPU", "0 0");
	world_row(&w, A "6/Lock", "0 -; 10 futex; 61 -");
	world_row(&w, A "6/Woken By", "40 A/5");
	world_row(&w, A "6/Woken In", "40 thread");
	world_close(&w, 0, 199);
	assert_int_equal(locks_of(&w.topo, NULL, 0, 199, &l, &err), 0);
	assert_int_equal(l.waits, 2);
	static const struct { int start, waiter, holder, taken, own; } want[] = { { 100, 5, 6, 30, 0 }, { 10, 6, 5, 0, 20 } };
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(l.wait[i].start, want[i].start);
		assert_int_equal(l.wait[i].waiter.tid, want[i].waiter);
		assert_int_equal(l.wait[i].holder.tid, want[i].holder);
		assert_int_equal(l.wait[i].taken, want[i].taken);
		assert_int_equal(l.wait[i].own_taken, want[i].own);
		assert_string_equal(l.name[l.wait[i].thief.name], "hog");
	}
	locks_release(&l);
	struct subject s = world_subject(&w, "A/5");
	char *text;
	assert_int_equal(explain_window(&w.topo, &s, 90, 199, &text, &err), 0);
	assert_non_null(strstr(text, "Look next at its 1 wait for locks, 70 ns in all (stealscope gaps --locks FILE A/5).\n"));
	free(text);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disk), cmocka_unit_test(test_ends), cmocka_unit_test(test_idle_and_out),
		cmocka_unit_test(test_no_idle_task), cmocka_unit_test(test_handler_held_up),
		cmocka_unit_test(test_on_its_way),
		cmocka_unit_test(test_no_longer_traced),
		cmocka_unit_test(test_explained), cmocka_unit_test(test_explained_in_part),
		cmocka_unit_test(test_pending), cmocka_unit_test(test_pending_for_two),
		cmocka_unit_test(test_woken_for_another),
		cmocka_unit_test(test_locks), cmocka_unit_test(test_idle_thief_of_a_spinner),
		cmocka_unit_test(test_locks_own_loss),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
