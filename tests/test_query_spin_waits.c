/* query/: suspected holders of locks for which a vCPU spins. */
#include "test.h"

#include "query_world.h"

/* A/6 is on a vCPU that a hog preempts in [30, 79]; A/5 is on a vCPU that always runs, with the exits `exits`. */
static void make(struct world *w, const char *status, const char *exits)
{
	world_open(w);
	world_has(w, "host/CPU0", .current = "0 40; 30 99; 80 40");
	world_has(w, "host/40", .status = "0 RUNNING; 30 PREEMPTED; 80 RUNNING", .cpu = "0 0");
	world_has(w, "host/50", .status = "0 RUNNING");
	world_has(w, "host/99", .name = "0 hog");
	world_has(w, "A/CPU0", .host_thread = "0 40", .pcpu = "0 0", .status = "0 RUNNING; 30 PREEMPTED; 80 RUNNING",
	          .current = "0 6");
	world_has(w, "A/CPU1", .host_thread = "0 50", .status = status, .current = "0 5", .exit = exits);
	world_has(w, "A/5", .status = "0 RUNNING", .cpu = "0 1");
	world_has(w, "A/6", .name = "0 other");
	world_has(w, "A/7", .cpu = "0 0");
}

/* For a thread as target, the waits are the vCPU's waits while the thread is current. */
static void check_own(const struct world *w, int64_t end, const char *whose, size_t waits)
{
	struct lock_list l;
	struct error err = ERROR_INIT;
	struct target s = world_target(w, whose);
	assert_int_equal(query_answer(locks_open(&w->catalog, &s, 0, end), &l, &err), 0);
	assert_int_equal(l.waits, waits);
	locks_release(&l);
}

/* Expected waits in order: "30-79 5 for 6, 50 taken by hog". */
static void check(struct world *w, int64_t end, const char *want)
{
	struct lock_list l;
	struct error err = ERROR_INIT;
	char text[1000] = "";
	world_close(w, 0, end);
	assert_int_equal(query_answer(locks_open(&w->catalog, NULL, 0, end), &l, &err), 0);
	for (size_t i = 0; i < l.waits; i++) {
		const struct lock_wait *wait = &l.wait[i];
		size_t used = strlen(text);
		char holder[16] = "";
		assert_true(wait->spins && wait->suspicion > 0 && (wait->suspects == 0) == (wait->holder.machine >= 0));
		snprintf(holder, sizeof holder, "%d", wait->holder.tid);
		snprintf(text + used, sizeof text - used, "%s%d-%d %d for %s, %d taken by %s", i ? "; " : "", (int)wait->start,
		         (int)wait->end, wait->waiter.tid, wait->suspects ? l.name[wait->suspects] : holder, (int)wait->culprit_ns,
		         wait->culprit.machine < 0 ? "nobody" : l.name[wait->culprit.name]);
	}
	assert_string_equal(text, want);
	check_own(w, end, "A/5", l.waits);
	check_own(w, end, "A/6", 0);
	check_own(w, end, "A/CPU1", l.waits);
	locks_release(&l);
	world_release(w);
}

/* Lets the suspect's vCPU have its pCPU again in [from, to]. */
static void runs_between(struct world *w, int from, int to)
{
	char text[80];
	snprintf(text, sizeof text, "%d RUNNING; %d PREEMPTED", from, to + 1);
	world_has(w, "host/40", .status = text);
	world_has(w, "A/CPU0", .status = text);
	snprintf(text, sizeof text, "%d 40; %d 99", from, to + 1);
	world_has(w, "host/CPU0", .current = text);
}

/* The vCPU runs for 3 ns between two exits, like a spinning vCPU, until 61: then it has the lock, and works. */
static void test_work_between(void **state)
{
	(void)state;
	struct world w;
	make(&w,
	     "0 RUNNING; 40 VMM; 41 RUNNING; 44 VMM; 45 RUNNING; 48 VMM; 49 RUNNING; 52 VMM; 53 RUNNING; 56 VMM; 57 RUNNING; "
	         "60 VMM; 61 RUNNING; 74 VMM; 75 RUNNING; 78 VMM; 79 RUNNING", "0 hlt; 40 pause; 90 hlt");
	runs_between(&w, 61, 63);
	check(&w, 99, "40-60 5 for 6, 21 taken by hog; 74-78 5 for 6, 5 taken by hog");
}

/* An interrupt splits the wait. If the suspect executes nothing in between, it is one wait; otherwise two. */
static void test_interrupted(void **state)
{
	(void)state;
	const char *status = "0 RUNNING; 40 VMM; 41 RUNNING; 44 VMM; 45 RUNNING; 48 VMM; 49 RUNNING; 52 VMM; 53 "
	                     "RUNNING; 56 VMM; "
	                     "57 RUNNING";
	for (int runs = 0; runs < 2; runs++) {
		struct world w;
		make(&w, status, "0 hlt; 40 pause; 46 interrupt; 52 pause; 58 hlt");
		if (runs)
			runs_between(&w, 47, 48);
		check(&w, 99, runs ? "40-44 5 for 6, 5 taken by hog; 52-56 5 for 6, 5 taken by hog"
		                   : "40-56 5 for 6, 17 taken by hog");
	}
}

/* A/7 waits for the vCPU that A/6 has. A/7 is a suspect only if it is known to spin. */
static void test_wanting_one(void **state)
{
	(void)state;
	for (int spun = 0; spun < 2; spun++) {
		struct world w;
		make(&w, "0 RUNNING; 40 VMM; 41 RUNNING; 44 VMM; 45 RUNNING", "0 hlt; 40 pause; 46 hlt");
		world_has(&w, "A/CPU0", .current = "0 7; 10 6", .exit = spun ? "0 pause; 5 hlt" : "0 hlt");
		world_has(&w, "A/7", .status = "0 RUNNING; 10 PREEMPTED");
		check(&w, 99, spun ? "40-44 5 for 6 or 7, 5 taken by hog" : "40-44 5 for 6, 5 taken by hog");
	}
}

/* Two vCPUs are off the CPU, the second one for a smaller part of the wait, with different culprits. */
static void test_two_vcpus(void **state)
{
	(void)state;
	for (int shorter = 0; shorter < 2; shorter++) {
		struct world w;
		make(&w, "0 RUNNING; 40 VMM; 41 RUNNING; 48 VMM; 50 RUNNING", "0 hlt; 40 pause; 50 hlt");
		world_has(&w, "host/CPU1", .current = "0 60; 30 98; 80 60");
		world_has(&w, "host/60",
		          .status = shorter ? "0 RUNNING; 45 PREEMPTED; 80 RUNNING" : "0 RUNNING; 47 PREEMPTED; 80 RUNNING",
		          .cpu = "0 1");
		world_has(&w, "host/98", .name = "0 other hog");
		world_has(&w, "A/CPU2", .host_thread = "0 60", .pcpu = "0 1",
		          .status = shorter ? "0 RUNNING; 45 PREEMPTED; 80 RUNNING" : "0 RUNNING; 47 PREEMPTED; 80 RUNNING",
		          .current = shorter ? "0 -" : "0 8");
		check(&w, 99, shorter ? "40-49 5 for 6 or vCPU2, 0 taken by nobody" : "40-49 5 for 6, 10 taken by hog");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work_between), cmocka_unit_test(test_interrupted), cmocka_unit_test(test_wanting_one),
		cmocka_unit_test(test_two_vcpus),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
