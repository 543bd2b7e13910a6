/* A process with threads that are named like the vCPUs of QEMU, for tests of live collection.
 *
 *     vm_process CPU SECONDS THREADS [kvm]
 *
 * With "kvm" the process has a VM of KVM with as many vCPUs, where /dev/kvm allows it; they run no guest code.
 * Pins its threads to a CPU (-1: to none), prints its PID and their TIDs, and waits for a line. The threads then spin for
 * some seconds and sleep. It prints "done" and waits for another line. */
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
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

/* Leaves the descriptors of a VM and its vCPUs open, by which VMs are found. */
static void make_vm(long vcpus)
{
	const int kvm = open("/dev/kvm", O_RDWR), vm = kvm < 0 ? -1 : ioctl(kvm, KVM_CREATE_VM, 0);
	for (long k = 0; vm >= 0 && k < vcpus; k++)
		if (ioctl(vm, KVM_CREATE_VCPU, k) < 0)
			return;
}

int main(int argc, char **argv)
{
	pthread_t thread[MAX_THREADS];
	char line[16];
	const long n = argc >= 4 ? atol(argv[3]) : 0;
	if (n < 1 || n > MAX_THREADS)
		return 1;
	if (argc > 4)
		make_vm(n);
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
