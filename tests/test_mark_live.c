/* beacon/: srbn_read() in the running service, with a publisher in this test whose counters are known; the model; memory
 * and locks. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "beacon/live_counters.h"
#include "latency/latency.h"
#include "call_counts.h"

/* ---- A publisher */

static char path[] = "/tmp/test-live-XXXXXX";
static struct publisher {
	int listener, client;
	struct published_header *page;
	struct published_thread *entry;
	pthread_t thread;
	unsigned sessions;
	_Atomic bool silent;       /* accepts no thread */
	bool is_small, is_unsealed;  /* the page is refused */
} publisher;

static void send_page(struct publisher *p, int client)
{
	static _Alignas(struct published_header) char other[PUBLISHED_BYTES];
	int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, p->is_small ? 10 : PUBLISHED_BYTES), 0);
	if (!p->is_unsealed)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	p->page = mmap(NULL, PUBLISHED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p->page != MAP_FAILED);
	p->page = p->is_small || p->is_unsealed ? (void *)other : p->page;
	p->entry = (struct published_thread *)(void *)p->page;
	*p->page = (struct published_header){ .magic = PUBLISHED_MAGIC, .version = PUBLISHED_VERSION, .source = SRBN_SOURCE_HOST,
		                                  .session = ++p->sessions, .beat = (unsigned long long)now_ns() };
	uint32_t version = PUBLISHED_VERSION;
	union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof fd)]; } control = { .head = {
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd) } };
	struct iovec part = { &version, sizeof version };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	assert_int_equal(sendmsg(client, &m, 0), sizeof version);
	close(fd);
}

static void *publish(void *arg)
{
	struct publisher *p = arg;
	p->client = accept(p->listener, NULL, NULL);
	if (p->client < 0)
		return NULL;
	send_page(p, p->client);
	for (uint32_t tid, at = 1; recv(p->client, &tid, sizeof tid, 0) == sizeof tid;) {
		if (p->silent || at == PUBLISHED_ENTRIES)
			continue;
		p->entry[at].seq = 2;
		__atomic_store_n(&p->entry[at++].tid, tid, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int setup(void **state)
{
	(void)state;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	memcpy(path, "/tmp/test-live-XXXXXX", sizeof path);
	close(mkstemp(path));
	unlink(path);
	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	publisher.silent = false;
	publisher.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	srbn_set_marker("/nonexistent/marker");
	return bind(publisher.listener, (struct sockaddr *)&a, sizeof a) || listen(publisher.listener, 4) ||
	       pthread_create(&publisher.thread, NULL, publish, &publisher);
}

static int teardown(void **state)
{
	(void)state;
	shutdown(publisher.listener, SHUT_RDWR);
	shutdown(publisher.client, SHUT_RDWR);
	pthread_join(publisher.thread, NULL);
	close(publisher.client);
	close(publisher.listener);
	unlink(path);
	return 0;
}

static struct published_thread *own_entry(void)
{
	const uint32_t tid = (uint32_t)syscall(SYS_gettid);
	for (uint32_t i = 1; i < PUBLISHED_ENTRIES; i++)
		if (publisher.entry[i].tid == tid)
			return &publisher.entry[i];
	return NULL;
}

/* Adds to the counters of an entry, as the collector does when the thread is scheduled in. */
static void gain(struct published_thread *e, int64_t stolen, int64_t throttled, int64_t wait, int64_t blocked)
{
	e->seq++;
	e->updated = (unsigned long long)now_ns();
	e->counter[PUBLISHED_STOLEN] += (unsigned long long)(stolen + throttled);
	e->counter[PUBLISHED_THROTTLED] += (unsigned long long)throttled;
	e->counter[PUBLISHED_WAIT] += (unsigned long long)wait;
	e->counter[PUBLISHED_BLOCKED] += (unsigned long long)blocked;
	e->counter[PUBLISHED_SWITCHES]++;
	e->counter[PUBLISHED_WAKEUPS] += blocked > 0;
	e->seq++;
}

/* Turns the counters on; a busy machine may need more time for that than srbn_live() waits. */
static int live_on(void)
{
	int source = SRBN_SOURCE_NONE;
	for (int i = 0; i < 20 && source != SRBN_SOURCE_HOST; i++)
		source = srbn_live(path);
	return source;
}

static void sleep_ms(int64_t ms)
{
	const struct timespec t = timespec_of(ms * NS_PER_MS);
	nanosleep(&t, NULL);
}

/* ---- Tests */

static void test_bounds(void **state)
{
	(void)state;
	struct srbn_data d;
	srbn_t early = srbn_start();
	assert_int_equal(srbn_read(early, &d), -1);
	assert_true(errno == EAGAIN || errno == ENOENT);  /* ENOENT: another test turned the counters on */
	assert_int_equal(srbn_read(early, &d), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(live_on(), SRBN_SOURCE_HOST);
	struct published_thread *e = own_entry();
	assert_non_null(e);
	gain(e, 100000, 0, 0, 0);
	errno = 79;
	srbn_t a = srbn_start(), b = srbn_start();
	gain(e, 1000, 200, 30, 0);      /* a and b execute */
	srbn_yield(b);
	gain(e, 10, 0, 5, 400000);      /* b is yielded */
	sleep_ms(3);
	srbn_resume(b);
	gain(e, 7, 0, 0, 0);
	assert_int_equal(srbn_read(a, &d), 0);
	assert_true(d.flags & SRBN_OPEN);
	assert_int_equal(d.stolen_low_ns, 1217);
	srbn_end(b);
	gain(e, 100, 0, 0, 0);
	srbn_end(a);
	gain(e, 5000, 0, 0, 0);         /* after both */
	assert_int_equal(errno, 79);
	assert_int_equal(srbn_read(b, &d), 0);
	assert_int_equal(d.stolen_low_ns, 1207);
	assert_int_equal(d.stolen_high_ns, 1217);
	assert_int_equal(d.throttled_ns, 200);
	assert_int_equal(d.wait_ns, 35);
	assert_int_equal(d.blocked_ns, 400000);
	assert_int_equal(d.unknown_ns, 0);
	assert_int_equal(d.source, SRBN_SOURCE_HOST);
	assert_int_equal(d.flags, 0);
	assert_int_equal(d.predicted_ns, -1);
	assert_true(d.latency_ns >= 3 * NS_PER_MS && d.executing_ns > 0 && d.executing_ns <= d.latency_ns - 3 * NS_PER_MS);
	assert_int_equal(srbn_read(a, &d), 0);
	assert_int_equal(d.stolen_low_ns, 1317);
	assert_int_equal(d.stolen_high_ns, 1317);
	srbn_end(a);                    /* it has ended */
	assert_int_equal(srbn_read(a, &d), 0);
	assert_int_equal(d.stolen_low_ns, 1317);
	for (int i = 0; i < 8192; i++)
		srbn_end(srbn_start());
	assert_int_equal(srbn_read(a, &d), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(srbn_read(0, &d), -1);
}

/* A waiting thread during srbn_read(), an entry with an odd sequence number, and the end of the publisher. */
static void test_limits(void **state)
{
	(void)state;
	struct srbn_data d;
	assert_int_equal(live_on(), SRBN_SOURCE_HOST);
	struct published_thread *e = own_entry();
	gain(e, 1, 0, 0, 0);
	srbn_t r = srbn_start();
	e->state = PUBLISHED_IS_WAITING;
	sleep_ms(2);
	assert_int_equal(srbn_read(r, &d), 0);
	assert_true(d.flags & SRBN_PARTIAL && d.unknown_ns >= 2 * NS_PER_MS && d.stolen_low_ns == 0 &&
	            d.stolen_high_ns >= d.unknown_ns);
	e->state = PUBLISHED_IS_RUNNING;
	assert_int_equal(srbn_read(r, &d), 0);
	assert_int_equal(d.stolen_high_ns, 0);
	e->seq++;
	srbn_yield(r);
	e->seq++;
	srbn_end(r);
	assert_int_equal(srbn_read(r, &d), 0);
	assert_true(d.flags & SRBN_PARTIAL && d.unknown_ns >= 2 * NS_PER_MS && d.unknown_ns <= d.latency_ns);
	assert_int_equal(d.stolen_high_ns, d.unknown_ns);
	/* The collector closes its page: the part up to the next mark is unknown, the rest comes from schedstat. */
	r = srbn_start();
	publisher.page->closed = 1;
	sleep_ms(1);
	srbn_yield(r);
	srbn_end(r);
	assert_int_equal(srbn_read(r, &d), 0);
	assert_true(d.flags & SRBN_PARTIAL && d.unknown_ns >= NS_PER_MS);
	if (access("/proc/self/task", F_OK) == 0) {
		r = srbn_start();
		srbn_end(r);
		assert_int_equal(srbn_read(r, &d), 0);
		assert_true(d.source == SRBN_SOURCE_SCHEDSTAT && d.flags & SRBN_WAITS_MIXED && d.throttled_ns == -1);
	}
}

/* The publisher is killed: its connection ends, while its page seems valid. */
static void test_killed(void **state)
{
	(void)state;
	assert_int_equal(live_on(), SRBN_SOURCE_HOST);
	srbn_t r = srbn_start();
	shutdown(publisher.client, SHUT_RDWR);
	sleep_ms(1100);
	srbn_end(r);
	struct srbn_data d;
	assert_int_equal(srbn_read(r, &d), 0);
	assert_true(d.flags & SRBN_PARTIAL && d.unknown_ns > NS_PER_S);
}

static void *resume_and_end(void *arg)
{
	const srbn_t *r = arg;
	assert_int_equal(live_on(), SRBN_SOURCE_HOST);
	struct published_thread *e = own_entry();
	gain(e, 50, 0, 0, 0);
	srbn_resume(*r);
	gain(e, 3000, 0, 0, 0);
	srbn_end(*r);
	return NULL;
}

static void test_moves(void **state)
{
	(void)state;
	struct srbn_data d;
	pthread_t other;
	assert_int_equal(live_on(), SRBN_SOURCE_HOST);
	struct published_thread *e = own_entry();
	srbn_t r = srbn_start();
	gain(e, 200, 0, 0, 0);
	srbn_yield(r);
	gain(e, 10, 0, 0, 0);
	assert_int_equal(pthread_create(&other, NULL, resume_and_end, &r), 0);
	pthread_join(other, NULL);
	gain(e, 40000, 0, 0, 0);
	assert_int_equal(srbn_read(r, &d), 0);
	assert_int_equal(d.stolen_low_ns, 3200);
	assert_int_equal(d.stolen_high_ns, 3210);
	/* The child of a fork has counters of its own, or none; the parent's go on. */
	r = srbn_start();
	pid_t pid = fork();
	if (pid == 0) {
		srbn_t c = srbn_start();
		srbn_end(c);
		_exit(srbn_read(c, &d) == 0 && d.source != SRBN_SOURCE_HOST ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	gain(e, 60, 0, 0, 0);
	srbn_end(r);
	assert_int_equal(srbn_read(r, &d), 0);
	assert_int_equal(d.stolen_low_ns, 60);
}

/* Pages that could shrink under the library are refused: reading them would end the process by SIGBUS. */
static void test_shrinking_pages(void **state)
{
	(void)state;
	if (access("/proc/thread-self/schedstat", F_OK))
		skip();
	for (int k = 0; k < 2; k++) {
		publisher.is_small = !(publisher.is_unsealed = k == 1);
		assert_int_equal(setup(NULL), 0);
		assert_int_equal(srbn_live(path), SRBN_SOURCE_SCHEDSTAT);
		assert_int_equal(teardown(NULL), 0);
	}
	publisher.is_small = publisher.is_unsealed = false;
	char file[] = "test-live-shared-XXXXXX";
	const int fd = mkstemp(file);
	const struct published_header h = { .magic = PUBLISHED_MAGIC, .version = PUBLISHED_VERSION, .source = SRBN_SOURCE_SHARED,
		                                .session = 98, .beat = 1 };
	assert_int_equal(ftruncate(fd, SHARED_BYTES), 0);
	assert_int_equal(pwrite(fd, &h, sizeof h, 0), sizeof h);
	assert_int_equal(fchmod(fd, 0666), 0);  /* every user may truncate it */
	assert_int_equal(srbn_live(file), SRBN_SOURCE_SCHEDSTAT);
	close(fd);
	unlink(file);
}

/* Memory shared by the host of this VM, a file here: maximum and culprit; nothing once the host is silent. */
static void test_shared(void **state)
{
	(void)state;
	if (access("/proc/thread-self/schedstat", F_OK))
		skip();
	char file[] = "test-live-shared-XXXXXX";
	int fd = mkstemp(file);
	cpu_set_t all, one;
	const int cpu = sched_getcpu();
	assert_true(cpu >= 0 && cpu < (int)PUBLISHED_ENTRIES - 1);
	CPU_ZERO(&one);
	CPU_SET((unsigned)cpu, &one);
	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	assert_int_equal(ftruncate(fd, SHARED_BYTES), 0);
	struct published_header *h = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(h != MAP_FAILED);
	close(fd);
	*h = (struct published_header){ .magic = PUBLISHED_MAGIC, .version = PUBLISHED_VERSION, .source = SRBN_SOURCE_SHARED,
		                            .session = 99, .beat = 1, .resolution = 5000 };
	struct published_thread *e = (struct published_thread *)(void *)h + 1 + cpu;
	struct shared_culprit *s = (struct shared_culprit *)(void *)((char *)h + PUBLISHED_BYTES) + 1 + cpu;
	*e = (struct published_thread){ .seq = 2, .tid = (unsigned)cpu + 1 };
	*s = (struct shared_culprit){ .seq = 2, .took = 7, .name = "db/vCPU1\n" };
	struct srbn_data d;
	assert_int_equal(srbn_live(file), SRBN_SOURCE_SHARED);
	srbn_t r = srbn_start();
	e->counter[PUBLISHED_STOLEN] += 400000;
	e->counter[PUBLISHED_THROTTLED] += 3000;
	sleep_ms(2);
	srbn_end(r);
	assert_int_equal(srbn_read(r, &d), 0);
	assert_int_equal(d.source, SRBN_SOURCE_SHARED);
	assert_int_equal(d.stolen_low_ns, 0);
	assert_int_equal(d.stolen_high_ns, 405000);
	assert_int_equal(d.throttled_ns, 3000);
	assert_int_equal(d.resolution_ns, 5000);
	assert_string_equal(d.culprit, "db/vCPU1?");
	r = srbn_start();
	h->session++;                   /* the host started again */
	sleep_ms(1);
	srbn_end(r);
	assert_int_equal(srbn_read(r, &d), 0);
	assert_true(d.flags & SRBN_PARTIAL && d.unknown_ns >= NS_PER_MS);
	sleep_ms(1100);                 /* no beat */
	r = srbn_start();
	srbn_end(r);
	assert_int_equal(srbn_read(r, &d), 0);
	assert_int_equal(d.source, SRBN_SOURCE_SCHEDSTAT);
	assert_string_equal(d.culprit, "");
	assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
	unlink(file);
}

/* ---- Model */

#define ROWS 200
static double x[ROWS * LIVE_INPUTS], y[ROWS];

static struct gp *train_model(char file[])
{
	struct error err = ERROR_INIT;
	struct gp_options small = { .rows = 64, .steps = 10 };
	unsigned seed = 11;
	for (size_t i = 0; i < ROWS; i++) {
		for (size_t j = 0; j < LIVE_INPUTS; j++)
			x[i * LIVE_INPUTS + j] = j == LIVE_VMM || j == LIVE_EXITS ? 0 : (double)(seed = seed * 1103515245 + 12345) / 1000;
		y[i] = 0.8 * x[i * LIVE_INPUTS + LIVE_OUT_FLIGHT] + 1e4 * sin(x[i * LIVE_INPUTS + LIVE_WAIT] / 1e6);
	}
	struct gp *g = gp_train(request_feature_name, LIVE_INPUTS, x, y, ROWS, &small, &err);
	assert_non_null(g);
	close(mkstemp(file));
	assert_int_equal(gp_save(g, file, &err), 0);
	return g;
}

/* The library's prediction, from the file, equals that of the program to 1e-9. */
static void test_model(void **state)
{
	(void)state;
	char file[] = "test-live-model-XXXXXX", old[] = "test-live-old-XXXXXX";
	struct gp *g = train_model(file);
	struct error err = ERROR_INIT;
	struct gp_prediction all[ROWS];
	assert_int_equal(gp_predict(g, x, ROWS, all, &err), 0);
	assert_int_equal(srbn_model("no-such-model"), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(srbn_model(file), 0);
	FILE *f = fopen(file, "r");
	unsigned line;
	const char *why;
	struct gp *again = gp_read(f, &line, &why);
	assert_non_null(again);
	for (size_t i = 0; i < ROWS; i++) {
		const double *row = x + i * LIVE_INPUTS;
		const struct gp_prediction p = gp_predict_row(again, row);
		assert_true(fabs(p.mean - all[i].mean) <= 1e-9 * fabs(all[i].mean) + 1e-9);
		assert_true(fabs(p.low - all[i].low) <= 1e-9 * (all[i].high - all[i].low + fabs(all[i].low)));
		assert_true(fabs(p.high - all[i].high) <= 1e-9 * (all[i].high - all[i].low + fabs(all[i].high)));
		struct srbn_data d = { .latency_ns = NS_PER_S, .predicted_ns = -1 };
		live_model_predict(row, &d);
		assert_int_equal(d.predicted_ns, llround(fmin(fmax(all[i].mean, 0), 1e9)));
		assert_int_equal(d.predicted_high_ns, llround(fmin(fmax(all[i].high, 0), 1e9)));
		assert_int_equal(d.flags, 0);
	}
	double unknown[LIVE_INPUTS];
	struct srbn_data d = { .latency_ns = NS_PER_S, .predicted_ns = -1 };
	memcpy(unknown, x, sizeof unknown);
	unknown[LIVE_EXITS] = NAN;  /* it was constant in the training */
	live_model_predict(unknown, &d);
	assert_int_equal(d.predicted_ns, llround(fmax(all[0].mean, 0)));
	unknown[LIVE_WAIT] = NAN;
	d = (struct srbn_data){ .predicted_ns = -1 };
	live_model_predict(unknown, &d);
	assert_true(d.predicted_ns == -1 && d.flags == SRBN_MODEL_LACKS_INPUT);
	unknown[LIVE_WAIT] = 1e12;
	live_model_predict(unknown, &d);
	assert_true(d.flags & SRBN_MODEL_OUTSIDE);
	/* A model without factor, as earlier versions wrote it; no model at all. The present one stays. */
	int fd = mkstemp(old);
	rewind(f);
	char text[1024];
	while (fgets(text, sizeof text, f) && strcmp(text, "factor\n") != 0)
		assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	fclose(f);
	assert_int_equal(srbn_model(old), -1);
	assert_int_equal(errno, ENOTSUP);
	assert_int_equal(srbn_model("/dev/null"), -1);
	assert_int_equal(errno, EINVAL);
	d = (struct srbn_data){ .latency_ns = NS_PER_S, .predicted_ns = -1 };
	live_model_predict(x, &d);
	assert_int_equal(d.predicted_ns, llround(fmax(all[0].mean, 0)));
	assert_int_equal(srbn_model(NULL), 0);
	gp_free(again);
	gp_free(g);
	unlink(file);
	unlink(old);
}

/* ---- 10,000 requests of 64 threads */

#define WORKERS 64
#define REQUESTS 10000

static pthread_barrier_t registered, done;
static _Atomic unsigned predicted, overwritten;  /* overwritten: others started 8192 requests before the read */

static void *work(void *arg)
{
	(void)arg;
	const int source = live_on();
	struct published_thread *e = own_entry();
	srbn_end(srbn_start());
	pthread_barrier_wait(&registered);
	for (int i = 0; e && i < REQUESTS / WORKERS + 1; i++) {
		struct srbn_data d;
		srbn_t r = srbn_start();
		gain(e, 1000, 0, 10, 0);
		srbn_yield(r);
		gain(e, 100, 0, 1, 50);
		srbn_resume(r);
		gain(e, 20, 0, 0, 0);
		srbn_end(r);
		const int failed = srbn_read(r, &d);
		overwritten += failed && errno == ENOENT;
		if (!failed && d.source == SRBN_SOURCE_HOST && d.predicted_ns >= 0 &&
		    d.stolen_low_ns == min64(1020, d.latency_ns) && d.stolen_high_ns == min64(1120, d.latency_ns))
			predicted++;
	}
	pthread_barrier_wait(&done);
	return source == SRBN_SOURCE_HOST ? NULL : publisher.page;
}

static void test_fast_path(void **state)
{
	(void)state;
	char file[] = "test-live-model-XXXXXX";
	struct gp *g = train_model(file);
	pthread_t worker[WORKERS];
	assert_int_equal(srbn_model(file), 0);
	pthread_barrier_init(&registered, NULL, WORKERS + 1);
	pthread_barrier_init(&done, NULL, WORKERS + 1);
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&worker[i], NULL, work, NULL), 0);
	pthread_barrier_wait(&registered);
	counting = true;
	pthread_barrier_wait(&done);
	counting = false;
	for (int i = 0; i < WORKERS; i++) {
		void *failed;
		pthread_join(worker[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(predicted + overwritten, WORKERS * (REQUESTS / WORKERS + 1));
	assert_true(overwritten < WORKERS);
	assert_int_equal(allocations, 0);
	assert_int_equal(locks, 0);
	/* The hooks work. */
	counting = true;
	void *volatile memory = malloc(1);
	free(memory);
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	counting = false;
	assert_int_equal(locks, 1);
	assert_true(SANITIZED || allocations == 1);
	assert_int_equal(srbn_model(NULL), 0);
	gp_free(g);
	unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moves, setup, teardown),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_shrinking_pages), cmocka_unit_test(test_shared),
		cmocka_unit_test_setup_teardown(test_fast_path, setup, teardown),
	};
	return cmocka_run_group_tests_name("mark_live", tests, NULL, NULL);
}
