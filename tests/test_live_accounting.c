/* The accounting of the BPF program, compiled for user space, with synthetic switches: times of states add up to the time
 * since the start, culprits add up to the waiting time, and each interval goes to the task that had the pCPU. */
#include "test.h"

#include <stdbool.h>
#include <string.h>

#include "live/collector.h"

#define CPUS 3
#define VICTIMS 4
#define CULPRITS 4096

static struct live_victim victim[VICTIMS];
static struct live_cpu cpus[CPUS];
static u64 pair[VICTIMS][CULPRITS], pair_unknown[VICTIMS];
static struct live_table live = { .slots = VICTIMS };
static u32 throttled_task;
static bool live_siblings;
static u64 shared[VICTIMS][CULPRITS], shared_unknown[VICTIMS];

static struct live_victim *victim_at(u32 slot)
{
	return slot < VICTIMS ? &victim[slot] : NULL;
}

static struct live_cpu *cpu_at(u32 cpu)
{
	return cpu < CPUS ? &cpus[cpu] : NULL;
}

/* Culprits of the tests are numbers below 2000, or victims. */
static void pair_add(u32 slot, const struct live_entry *e, u64 ns)
{
	if (slot & LIVE_SHARED) {
		u64 *of = shared[slot ^ LIVE_SHARED];
		*(e->culprit == CULPRIT_UNKNOWN ? &shared_unknown[slot ^ LIVE_SHARED] :
		  &of[e->culprit & CULPRIT_VICTIM ? 2000 + (e->culprit & 0xff) : e->culprit]) += ns;
		return;
	}
	if (e->culprit == CULPRIT_UNKNOWN)
		pair_unknown[slot] += ns;
	else
		pair[slot][e->culprit & CULPRIT_VICTIM ? 2000 + (e->culprit & 0xff) : e->culprit] += ns;
}

static u64 steal[CPUS];

static u64 steal_of(u32 cpu)
{
	return cpu < CPUS ? steal[cpu] : 0;
}

static int task_is_throttled(u64 task)
{
	return task && task == throttled_task;
}

#define ATOMIC_ADD(pointer, n) __sync_fetch_and_add((pointer), (n))
#define ATOMIC_SWAP(pointer, old, new) __sync_bool_compare_and_swap((pointer), (old), (new))
#define LIVE_GLOBAL static __attribute__((unused))
#define LIVE_REPEAT(n, step, arg) do { for (u32 i_ = 0; i_ < (n) && !(step)(i_, (arg)); i_++) ; } while (0)
#include "live/accounting.h"

static u64 started[VICTIMS];

static void reset(u64 now)
{
	memset(victim, 0, sizeof victim);
	memset(cpus, 0, sizeof cpus);
	memset(pair, 0, sizeof pair);
	memset(pair_unknown, 0, sizeof pair_unknown);
	memset(shared, 0, sizeof shared);
	memset(shared_unknown, 0, sizeof shared_unknown);
	throttled_task = 0;
	live_siblings = false;
	for (u32 i = 0; i < VICTIMS; i++) {
		started[i] = now;
		victim[i].task = i + 1;
		victim[i].cpu = LIVE_SAME_CPU;
		victim[i].mark = mark_make(now, LIVE_BLOCKED);
	}
}

/* The task `in` gets a pCPU: a number, or CULPRIT_VICTIM + slot. */
static void switch_to(u32 cpu, u32 in, u64 now)
{
	if (in & CULPRIT_VICTIM)
		victim_move(in & 0xff, LIVE_RUNNING, cpu, now);
	const struct live_entry e = { .ts = now, .culprit = in, .tid = in };
	log_append(&cpus[cpu], cpu, &e, 0);
}

/* Checks both invariants at the time of the victim's last event. */
static void check_sums(u32 slot)
{
	const struct live_victim *v = &victim[slot];
	u64 states = 0, culprits = pair_unknown[slot];
	for (int i = 0; i < LIVE_STATES; i++)
		states += v->ns[i];
	for (int i = 0; i < CULPRITS; i++)
		culprits += pair[slot][i];
	assert_int_equal(states, (v->mark >> LIVE_MARK_BITS) - started[slot]);
	assert_int_equal(culprits, v->ns[LIVE_WAITING]);
}

static void test_wakeup_and_culprits(void **state)
{
	(void)state;
	reset(1000);
	switch_to(0, 7, 1000);
	victim_move(0, LIVE_WAITING, 0, 2000);  /* a wakeup, by another CPU */
	switch_to(0, 8, 2500);
	switch_to(0, CULPRIT_VICTIM, 4000);
	victim_move(0, LIVE_BLOCKED, 0, 5000);
	switch_to(0, 7, 5000);
	check_sums(0);
	assert_int_equal(pair[0][7], 500);
	assert_int_equal(pair[0][8], 1500);
	assert_int_equal(victim[0].ns[LIVE_RUNNING], 1000);
	assert_int_equal(victim[0].waits, 1);
	assert_int_equal(victim[0].longest, 2000);
	assert_int_equal(victim[0].longest_culprit, 8);
}

/* A second sleep within a wait, an event with a time before the mark, and events that repeat: nothing counts twice. */
static void test_nested_sleeps(void **state)
{
	(void)state;
	reset(0);
	switch_to(0, 7, 0);
	victim_move(0, LIVE_WAITING, 0, 100);
	victim_move(0, LIVE_WAITING, 0, 200);
	victim_move(0, LIVE_BLOCKED, 0, 300);
	victim_move(0, LIVE_WAITING, 0, 250);  /* another CPU was late */
	victim_move(0, LIVE_WAITING, 0, 400);
	switch_to(0, CULPRIT_VICTIM, 500);
	switch_to(0, CULPRIT_VICTIM, 500);
	check_sums(0);
	assert_int_equal(pair[0][7], 400);
	assert_int_equal(victim[0].ns[LIVE_BLOCKED], 100);
	assert_int_equal(victim[0].waits, 2);
}

static void test_migration_while_waiting(void **state)
{
	(void)state;
	reset(0);
	switch_to(0, 7, 0);
	switch_to(1, 9, 0);
	victim_move(0, LIVE_WAITING, 0, 100);
	victim_move(0, LIVE_WAITING, 1, 300);
	switch_to(1, CULPRIT_VICTIM, 1000);
	check_sums(0);
	assert_int_equal(pair[0][7], 200);
	assert_int_equal(pair[0][9], 700);
	assert_int_equal(victim[0].waits, 1);
	assert_int_equal(victim[0].longest, 900);
}

/* A quota: throttled time has no culprit among tasks, and ends at the next switch of the pCPU. */
static void test_throttling(void **state)
{
	(void)state;
	reset(0);
	switch_to(0, 7, 0);
	victim_move(0, LIVE_WAITING, 0, 100);
	throttled_task = 1;
	cpus[0].throttled = 1;
	switch_to(0, 8, 200);
	assert_int_equal(victim[0].mark & (LIVE_STATES - 1), LIVE_THROTTLED);
	throttled_task = 0;
	switch_to(0, 9, 700);
	assert_int_equal(victim[0].mark & (LIVE_STATES - 1), LIVE_WAITING);
	switch_to(0, CULPRIT_VICTIM, 800);
	check_sums(0);
	assert_int_equal(victim[0].ns[LIVE_THROTTLED], 500);
	assert_int_equal(pair[0][7], 100);
	assert_int_equal(pair[0][9], 100);
	assert_int_equal(victim[0].longest_culprit, CULPRIT_THROTTLED);
}

/* More switches within one wait than the log holds, by more culprits than one wait tells apart. */
static void test_log_wrap(void **state)
{
	(void)state;
	reset(0);
	switch_to(0, 1, 0);
	victim_move(0, LIVE_WAITING, 0, 5);
	for (u32 i = 1; i <= 5 * LIVE_LOG; i++)
		switch_to(0, 1 + i, 10 * i);
	switch_to(0, CULPRIT_VICTIM, 10 * (5 * LIVE_LOG + 1));
	check_sums(0);
	assert_int_equal(pair_unknown[0], 0);
	assert_int_equal(pair[0][1], 5);
	for (u32 i = 1; i <= 5 * LIVE_LOG; i++)
		assert_int_equal(pair[0][1 + i], 10);
	assert_int_equal(victim[0].longest_culprit, CULPRIT_SEVERAL);
}

/* A slot that is used again for another thread begins with nothing; victims can be culprits of each other. */
static void test_reuse(void **state)
{
	(void)state;
	reset(0);
	switch_to(0, CULPRIT_VICTIM + 1, 0);
	victim_move(0, LIVE_WAITING, 0, 100);
	switch_to(0, CULPRIT_VICTIM, 400);
	check_sums(0);
	assert_int_equal(pair[0][2001], 300);
	memset(&victim[0], 0, sizeof victim[0]);
	memset(pair[0], 0, sizeof pair[0]);
	started[0] = 500;
	victim[0].cpu = LIVE_SAME_CPU;
	victim[0].mark = mark_make(500, LIVE_UNKNOWN);
	victim_move(0, LIVE_WAITING, 0, 600);
	switch_to(0, 5, 650);
	switch_to(0, CULPRIT_VICTIM, 700);
	check_sums(0);
	assert_int_equal(victim[0].ns[LIVE_UNKNOWN], 100);
	assert_int_equal(victim[0].ns[LIVE_WAITING], 100);
	assert_int_equal(pair[0][5], 50);
}

/* Random events on three pCPUs: the invariants hold after each, and waits before the first switch are unknown. */
static void test_random(void **state)
{
	(void)state;
	u64 seed = 88172645463325252u;
	u64 now = 0;
	reset(0);
	for (int n = 0; n < 200000; n++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		const u32 slot = (u32)(seed % VICTIMS), cpu = (u32)((seed >> 8) % CPUS);
		now += (seed >> 16) % 1000;
		switch ((seed >> 32) % 6) {
		case 0: switch_to(cpu, CULPRIT_VICTIM + slot, now); break;
		case 1: switch_to(cpu, 1 + (u32)((seed >> 40) % 1000), now); break;
		case 2: victim_move(slot, LIVE_WAITING, cpu, now); break;
		case 3: victim_move(slot, LIVE_BLOCKED, cpu, now - now % 7); break;
		case 4: throttled_task = (u32)(seed >> 40) % (VICTIMS + 1); cpus[cpu].throttled = 1; break;
		case 5: account_cpu(cpu, now); break;
		}
		check_sums(slot);
	}
}

/* Waiting time by owner: of the same process, of another one, of the idle CPU; by PID namespace if the victim has one. */
static void test_owners(void **state)
{
	(void)state;
	reset(0);
	victim[0].tgid = 100;
	victim[1].tgid = 100;
	victim[1].space = 7;
	static const struct live_entry task[] = {
		{ .ts = 1000, .culprit = 100, .tid = 101, .tgid = 100 }, { .ts = 1300, .culprit = 500, .tid = 500, .tgid = 500, .space = 7 },
		{ .ts = 1350, .culprit = 0 },
	};
	victim_move(0, LIVE_WAITING, 0, 900);
	victim_move(1, LIVE_WAITING, 0, 900);
	for (size_t i = 0; i < COUNT(task); i++)
		log_append(&cpus[0], 0, &task[i], 0);
	victim_move(0, LIVE_RUNNING, 0, 1360);
	victim_move(1, LIVE_RUNNING, 0, 1360);
	assert_int_equal(victim[0].unsure_ns, 100);  /* before the log */
	assert_int_equal(victim[0].own_ns, 300);
	assert_int_equal(victim[0].other_ns, 60);
	assert_int_equal(victim[1].own_ns, 50);
	assert_int_equal(victim[1].other_ns, 310);
	for (u32 i = 0; i < 2; i++)
		assert_int_equal(victim[i].own_ns + victim[i].other_ns + victim[i].unsure_ns, victim[i].ns[LIVE_WAITING]);
	assert_int_equal(victim[0].sleeps, 1);
	victim_move(0, LIVE_BLOCKED, 0, 1400);
	victim_move(0, LIVE_BLOCKED, 0, 1410);
	victim_move(0, LIVE_WAITING, 0, 1420);
	assert_int_equal(victim[0].sleeps, 2);
}

/* The steal clock of the CPU where the victim is: by state, across a migration; none of it while the victim sleeps. */
static void test_steal_clock(void **state)
{
	(void)state;
	reset(0);
	steal[0] = 1000;
	steal[1] = 70;
	victim_move(0, LIVE_RUNNING, 0, 100);
	steal[0] += 30;
	victim_move(0, LIVE_WAITING, 0, 200);
	steal[0] += 5;
	steal[1] += 600;
	victim_move(0, LIVE_WAITING, 1, 300);  /* it migrates */
	steal[0] += 8000;
	steal[1] += 2;
	victim_move(0, LIVE_RUNNING, 1, 400);
	steal[1] += 9;
	victim_move(0, LIVE_RUNNING, 1, 410);  /* a timer */
	steal[1] += 1;
	victim_move(0, LIVE_BLOCKED, 1, 420);
	steal[1] += 10000;
	victim_move(0, LIVE_RUNNING, 1, 500);
	assert_int_equal(victim[0].stolen_run, 40);
	assert_int_equal(victim[0].stolen_wait, 7);
	memset(steal, 0, sizeof steal);
}

/* Without the event of a switch, the time of the victim and of the culprit is unknown. */
static void test_missed_switch(void **state)
{
	(void)state;
	reset(0);
	victim_move(0, LIVE_WAITING, 0, 100);
	switch_to(0, 40, 100);
	victim_was_missed(&victim[0]);  /* it is scheduled out, but was not seen to be scheduled in */
	victim_move(0, LIVE_WAITING, 0, 500);
	assert_int_equal(victim[0].ns[LIVE_UNKNOWN], 400);
	assert_int_equal(victim[0].ns[LIVE_WAITING], 0);
	log_check(&cpus[0], 40);
	assert_int_equal(cpus[0].log[0].culprit, 40);
	log_check(&cpus[0], 41);        /* 41 leaves the pCPU that 40 had by the log */
	victim_move(0, LIVE_RUNNING, 0, 700);
	assert_int_equal(pair_unknown[0], 200);
	assert_int_equal(victim[0].unsure_ns, 200);
	/* A victim that runs is not moved to a state that waits by a caller with an older view. */
	victim_move(0, LIVE_WAITING | LIVE_IF_WAITING, LIVE_SAME_CPU, 800);
	assert_int_equal(victim[0].mark & (LIVE_STATES - 1), LIVE_RUNNING);
	victim_was_missed(&victim[0]);
	assert_int_equal(victim[0].mark & (LIVE_STATES - 1), LIVE_RUNNING);
}

/* CPUs 0 and 1 form a core. */
static void reset_core(void)
{
	reset(0);
	live_siblings = true;
	cpus[0].sibling = 2;
	cpus[1].sibling = 1;
}

/* Running time is split along the log of the other CPU of the core: idle, busy, and unknown before its first switch. */
static void test_shared_core(void **state)
{
	(void)state;
	reset_core();
	switch_to(0, CULPRIT_VICTIM, 100);
	switch_to(1, 0, 150);
	switch_to(1, 7, 300);
	switch_to(1, 8, 600);
	switch_to(1, 0, 700);
	victim_move(0, LIVE_BLOCKED, 0, 1000);
	assert_int_equal(victim[0].shared_ns, 400);
	assert_int_equal(shared[0][7], 300);
	assert_int_equal(shared[0][8], 100);
	assert_int_equal(shared_unknown[0], 50);
	check_sums(0);
	switch_to(2, CULPRIT_VICTIM + 1, 1000);  /* a core of its own */
	victim_move(1, LIVE_BLOCKED, 2, 2000);
	assert_int_equal(victim[1].shared_ns + shared_unknown[1], 0);
}

/* The log of the other CPU wraps around while the victim runs: its switches account the victim before that. A victim that no
 * longer runs is not claimed. */
static void test_shared_log_wrap(void **state)
{
	(void)state;
	reset_core();
	switch_to(1, 1, 0);
	switch_to(0, CULPRIT_VICTIM, 5);
	for (u32 i = 1; i <= 5 * LIVE_LOG; i++)
		switch_to(1, i % 2 ? 0 : 1 + i, 10 * i);
	victim_move(0, LIVE_WAITING, 0, 10 * (5 * LIVE_LOG + 1));
	account_cpu(1, 10 * (5 * LIVE_LOG + 2));
	assert_int_equal(victim[0].mark & (LIVE_STATES - 1), LIVE_WAITING);
	assert_int_equal(shared_unknown[0], 0);
	assert_int_equal(shared[0][1], 5);
	assert_int_equal(victim[0].shared_ns, 5 + 5 * LIVE_LOG / 2 * 10);
	assert_int_equal(victim[0].ns[LIVE_RUNNING], 10 * (5 * LIVE_LOG + 1) - 5);
}

/* Random switches of both CPUs of a core, compared with a simple count of each ns. */
static void test_shared_random(void **state)
{
	u64 seed = 42, want[VICTIMS][16] = { 0 }, ran[VICTIMS] = { 0 };
	u32 has[2] = { 0, 0 };
	(void)state;
	reset_core();
	switch_to(0, 0, 0);
	switch_to(1, 0, 0);
	for (u64 t = 1; t < 20000; t++) {
		for (u32 c = 0; c < 2; c++) {
			if (has[c] & CULPRIT_VICTIM && !(has[1 - c] & CULPRIT_VICTIM))
				want[has[c] & 0xff][has[1 - c]]++;
			if (has[c] & CULPRIT_VICTIM)
				ran[has[c] & 0xff]++;
		}
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		const u32 c = seed >> 40 & 1, next = seed >> 50 & 7;
		if (seed >> 45 & 3)
			continue;
		if (has[c] & CULPRIT_VICTIM)
			victim_move(has[c] & 0xff, LIVE_BLOCKED, c, t);
		has[c] = next >= 6 ? CULPRIT_VICTIM + c : next;
		switch_to(c, has[c], t);
	}
	for (u32 c = 0; c < 2; c++) {
		if (has[c] & CULPRIT_VICTIM)
			victim_move(c, LIVE_BLOCKED, c, 20000);
		assert_in_range(victim[c].ns[LIVE_RUNNING], ran[c], ran[c] + 1);
		for (u32 i = 1; i < 6; i++)
			assert_in_range(shared[c][i] + 1, want[c][i], want[c][i] + 2);
		assert_true(victim[c].shared_ns > 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared_core), cmocka_unit_test(test_shared_log_wrap), cmocka_unit_test(test_shared_random),
		cmocka_unit_test(test_wakeup_and_culprits), cmocka_unit_test(test_nested_sleeps),
		cmocka_unit_test(test_migration_while_waiting), cmocka_unit_test(test_throttling),
		cmocka_unit_test(test_log_wrap), cmocka_unit_test(test_reuse), cmocka_unit_test(test_random),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_steal_clock),
		cmocka_unit_test(test_missed_switch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
