/* A process with threads that are named like the vCPUs of QEMU, for tests of live collection.
 *
 *     vm_process CPU SECONDS THREADS
 *
 * Pins its threads to a CPU (-1: to none), prints its PID and their TIDs, and waits for a line. The threads then spin for
 * some seconds and sleep. It prints "done" and waits for another line. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 256

static sem_t ready, go, done, never;
static int cpu;
static double seconds;
static long tid[MAX_THREADS];

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *spin(void *arg)
{
	const long k = (long)(intptr_t)arg;
	char name[16];
	cpu_set_t set;
	CPU_ZERO(&set);
	snprintf(name, sizeof name, "CPU %ld/KVM", k);
	prctl(PR_SET_NAME, name);
	if (cpu >= 0) {
		CPU_SET((unsigned)cpu, &set);
		sched_setaffinity(0, sizeof set, &set);
	}
	tid[k] = syscall(SYS_gettid);
	sem_post(&ready);
	sem_wait(&go);
	for (const double end = now() + seconds; now() < end;)
		continue;
	sem_post(&done);
	sem_wait(&never);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[MAX_THREADS];
	char line[16];
	const long n = argc == 4 ? atol(argv[3]) : 0;
	if (n < 1 || n > MAX_THREADS)
		return 1;
	cpu = atoi(argv[1]);
	seconds = atof(argv[2]);
	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	sem_init(&never, 0, 0);
	for (long k = 0; k < n; k++)
		if (pthread_create(&thread[k], NULL, spin, (void *)(intptr_t)k))
			return 1;
	for (long k = 0; k < n; k++)
		sem_wait(&ready);
	printf("%d", (int)getpid());
	for (long k = 0; k < n; k++)
		printf(" %ld", tid[k]);
	printf("\n");
	fflush(stdout);
	if (fgets(line, sizeof line, stdin)) {
		for (long k = 0; k < n; k++)
			sem_post(&go);
		for (long k = 0; k < n; k++)
			sem_wait(&done);
		printf("done\n");
		fflush(stdout);
		if (!fgets(line, sizeof line, stdin))
			return 0;
	}
	return 0;
}
