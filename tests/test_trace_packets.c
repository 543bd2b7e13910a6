/* Tests streams with many packets, made from the recording's single packet: decoded by several threads, with damaged
 * packets, with lost events, without an index. Also tests traces with many streams. */
#include "test.h"

#include <endian.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "trace/layout/layout.h"
#include "trace/store.h"
#include "trace/trace.h"
#include "trace_files.h"
#include "trace_same.h"

enum { CH1_EVENTS = 16632, CH1_BYTES = 851968, PACKET_SHIFT = 33 };

/* Offsets in LTTng's packet header and context. */
enum { AT_BEGIN = 32, AT_END = 40, AT_SEQUENCE = 64, AT_DISCARDED = 72 };

static void add64(char *at, uint64_t v)
{
	uint64_t old;
	memcpy(&old, at, 8);
	old = htole64(le64toh(old) + v);
	memcpy(at, &old, 8);
}

static void add64_be(char *at, uint64_t v)
{
	uint64_t old;
	memcpy(&old, at, 8);
	old = htobe64(be64toh(old) + v);
	memcpy(at, &old, 8);
}

/* Shifts the times of a packet by a multiple of 2^32 ns. Most events contain 32 bits of their time, which do not change.
 * Some contain 64 bits: after the header 0xffff and a 32-bit id. */
static void shift_full_times(char *packet, size_t len, uint64_t time_shift)
{
	uint64_t begin, end, time;
	uint32_t id;
	memcpy(&begin, packet + AT_BEGIN, 8);
	memcpy(&end, packet + AT_END, 8);
	begin = le64toh(begin) - time_shift;  /* the times of the packet are shifted already */
	end = le64toh(end) - time_shift;
	for (char *p = packet; p + 14 <= packet + len; p++) {
		if (memcmp(p, "\xff\xff", 2) != 0)
			continue;
		memcpy(&id, p + 2, 4);
		memcpy(&time, p + 6, 8);
		time = le64toh(time);
		if (le32toh(id) < 1000 && time >= begin && time <= end)
			add64(p + 6, time_shift);
	}
}

/* Makes a host trace that contains only CPU 1's stream: n copies of its packet, each 2^33 ns after the previous one,
 * with `lost` more events lost in each. */
static char *many_packets(const char *name, size_t n, uint64_t lost)
{
	char *dir = copy_trace(name, "host");
	char *stream = mem_printf("%s/ch_1", dir), *index = mem_printf("%s/index/ch_1.idx", dir);
	size_t len, index_len;
	char *packet = read_whole(stream, &len), *entry = read_whole(index, &index_len);
	assert_int_equal(len, CH1_BYTES);
	assert_int_equal(index_len, 16 + 72);
	char *all = mem_new(n, len), *entries = mem_new(16 + 72 * n, 1);
	memcpy(entries, entry, 16);
	for (size_t i = 0; i < n; i++) {
		char *p = all + i * len, *e = entries + 16 + 72 * i;
		memcpy(p, packet, len);
		memcpy(e, entry + 16, 72);
		add64(p + AT_BEGIN, (uint64_t)i << PACKET_SHIFT);
		add64(p + AT_END, (uint64_t)i << PACKET_SHIFT);
		shift_full_times(p, len, (uint64_t)i << PACKET_SHIFT);
		add64(p + AT_SEQUENCE, i);
		add64(p + AT_DISCARDED, (i + 1) * lost);
		add64_be(e, i * len);
		add64_be(e + 24, (uint64_t)i << PACKET_SHIFT);
		add64_be(e + 32, (uint64_t)i << PACKET_SHIFT);
		add64_be(e + 40, (i + 1) * lost);
		add64_be(e + 64, i);
	}
	write_file(stream, all, n * len);
	write_file(index, entries, 16 + 72 * n);
	delete(dir, "ch_0");
	delete(dir, "index/ch_0.idx");
	free(stream);
	free(index);
	free(packet);
	free(entry);
	free(all);
	free(entries);
	return dir;
}

struct result {
	struct trace *trace;
	struct notes notes;
	uint64_t count[EVENT_KIND_COUNT];
};

static void load_trace(const char *dir, unsigned workers, struct result *r)
{
	struct trace_spec spec = { .dir = dir };
	struct error err = ERROR_INIT;
	*r = (struct result){ 0 };
	if (trace_load(&spec, 1, &(struct trace_options){ .workers = workers }, &r->trace, &r->notes, &err))
		fail_msg("%s", err.text);
	struct trace_cursor *c = trace_cursor_open(r->trace, ALL_KINDS, -1, &err);
	struct event ev;
	while (trace_cursor_next(c, &ev, &err) > 0)
		r->count[ev.kind]++;
	trace_cursor_close(c);
}

static void release_result(struct result *r)
{
	trace_free(r->trace);
	notes_release(&r->notes);
}

/* Turns the trace into one of an old LTTng: the metadata names the version, packets end before their last events, and
 * entries of the index (version 1.0) have no instance and no number. */
static void make_old(const char *dir, size_t n)
{
	char *metadata = mem_printf("%s/metadata", dir), *stream = mem_printf("%s/ch_1", dir);
	char *index = mem_printf("%s/index/ch_1.idx", dir);
	size_t text_len, len, index_len;
	char *text = read_whole(metadata, &text_len), *packets = read_whole(stream, &len), *entries = read_whole(index, &index_len);
	char *minor = memmem(text, text_len, "tracer_minor = 13", 17);
	assert_non_null(minor);
	memcpy(minor, "tracer_minor = 7 ", 17);
	memset(entries + 8, 0, 4);
	entries[15] = 56;
	for (size_t i = 0; i < n; i++) {
		add64(packets + i * CH1_BYTES + AT_END, -(uint64_t)1000000);
		add64_be(entries + 16 + 72 * i + 32, -(uint64_t)1000000);
		memmove(entries + 16 + 56 * i, entries + 16 + 72 * i, 56);
	}
	write_file(metadata, text, text_len);
	write_file(stream, packets, len);
	write_file(index, entries, 16 + 56 * n);
	free(metadata);
	free(stream);
	free(index);
	free(text);
	free(packets);
	free(entries);
}

/* Old LTTng: the reader finds all events, and no CPU ends before its last event. An index of version 1.0 is valid. */
static void test_old_tracer(void **state)
{
	(void)state;
	enum { N = 3 };
	char *dir = many_packets("old", N, 5);
	struct result now, old;
	load_trace(dir, 1, &now);
	make_old(dir, N);
	load_trace(dir, 1, &old);
	const struct trace_info *a = trace_info(old.trace);
	assert_int_equal(a->events, N * CH1_EVENTS);
	assert_int_equal(a->lost, trace_info(now.trace)->lost);
	assert_true(a->cpu[1].begin <= a->cpu[1].end && a->cpu[1].end == a->end);
	for (size_t i = 0; i < old.notes.len; i++)
		assert_int_not_equal(old.notes.item[i].kind, NOTE_KIND_DAMAGE);
	release_result(&now);
	release_result(&old);
	free(dir);
}

/* A single stream has the same events for any number of threads. */
static void test_shared_stream(void **state)
{
	(void)state;
	enum { N = 7 };
	char *dir = many_packets("shared", N, 0);
	struct result one, more;
	load_trace(dir, 1, &one);
	assert_int_equal(trace_info(one.trace)->events, N * CH1_EVENTS);
	assert_int_equal(one.notes.len, 0);
	for (unsigned workers = 2; workers < 5; workers++) {
		load_trace(dir, workers, &more);
		assert_int_equal(more.notes.len, 0);
		assert_same_events(one.trace, more.trace, ALL_KINDS);
		release_result(&more);
	}
	release_result(&one);
	free(dir);
}

/* Events are lost in the tail of a packet, or between the packet and the previous one. Counts and positions do not
 * depend on the number of threads. */
static void test_lost_events(void **state)
{
	(void)state;
	enum { N = 4 };
	char *dir = many_packets("lost", N, 10);
	struct result one, two;
	load_trace(dir, 1, &one);
	load_trace(dir, 2, &two);
	assert_int_equal(one.count[EV_LOST], 2 * N - 1);
	assert_int_equal(trace_info(one.trace)->lost, N * 10);
	assert_int_equal(trace_info(one.trace)->uncounted, 0);
	assert_same_events(one.trace, two.trace, ALL_KINDS);
	assert_int_equal(trace_info(two.trace)->lost, N * 10);
	struct error err = ERROR_INIT;
	struct trace_cursor *c = trace_cursor_open(one.trace, ALL_KINDS, -1, &err);
	struct event ev, last = { .ts = 0 };
	while (trace_cursor_next(c, &ev, &err) > 0) {
		if (last.kind == EV_LOST)
			assert_true(ev.ts >= last.lost.end);
		if (ev.kind == EV_LOST)
			assert_int_equal(ev.ts, last.kind == EV_LOST ? last.lost.end + 1 : last.ts);
		last = ev;
	}
	trace_cursor_close(c);
	release_result(&one);
	release_result(&two);
	/* Without the index, only the first packet's header shows that the count starts with this packet. */
	delete(dir, "index");
	load_trace(dir, 1, &one);
	assert_int_equal(one.count[EV_LOST], 2 * N - 1);
	assert_int_equal(trace_info(one.trace)->lost, N * 10);
	assert_int_equal(trace_info(one.trace)->uncounted, 0);
	release_result(&one);
	free(dir);
}

/* Packet 1 of 4 is damaged in its header or body: the others are complete, and the gap is reported. */
static void check_damage(const char *name, long offset, size_t len, bool has_index)
{
	enum { N = 4 };
	for (unsigned workers = 1; workers < 3; workers++) {
		char *numbered = mem_printf("%s%u", name, workers);
		char *dir = many_packets(numbered, N, 0);
		damage(dir, "ch_1", CH1_BYTES + offset, len);
		if (!has_index)
			delete(dir, "index");
		struct result r;
		load_trace(dir, workers, &r);
		assert_true(r.notes.len > 0);
		assert_true(r.count[EV_LOST] > 0);
		uint64_t events = trace_info(r.trace)->events;
		if (has_index)
			assert_true(events >= 3 * CH1_EVENTS && events < 4 * CH1_EVENTS);
		else
			assert_true(events >= CH1_EVENTS && events < 4 * CH1_EVENTS);
		release_result(&r);
		free(dir);
		free(numbered);
	}
}

static void test_damaged_packet(void **state)
{
	(void)state;
	check_damage("body", 100000, 300, true);
	check_damage("header", 0, 100, true);
	check_damage("context", AT_BEGIN, 32, true);
	check_damage("all", 0, CH1_BYTES, true);
	check_damage("body-plain", 100000, 300, false);
}

static void test_cut_last_packet(void **state)
{
	(void)state;
	char *dir = many_packets("cut", 3, 0);
	cut(dir, "ch_1", 2 * CH1_BYTES + CH1_BYTES / 8 * 7);  /* the padding begins after it */
	for (unsigned workers = 1; workers < 3; workers++) {
		struct result r;
		load_trace(dir, workers, &r);
		assert_true(r.notes.len > 0);
		assert_in_range(trace_info(r.trace)->events, 2 * CH1_EVENTS + CH1_EVENTS / 100 * 85, 3 * CH1_EVENTS - 1);
		release_result(&r);
	}
	free(dir);
}

/* The same packet occurs twice: the times of the second one are before those of the first. */
static void test_clock_backwards(void **state)
{
	(void)state;
	char *dir = copy_trace("backwards", "host"), *stream = mem_printf("%s/ch_1", dir);
	size_t len;
	char *packet = read_whole(stream, &len), *twice = mem_new(2, len);
	memcpy(twice, packet, len);
	memcpy(twice + len, packet, len);
	write_file(stream, twice, 2 * len);
	delete(dir, "index");
	struct result r;
	load_trace(dir, 2, &r);
	assert_int_equal(trace_info(r.trace)->events, 18213 + CH1_EVENTS);
	bool has_note = false;
	for (size_t i = 0; i < r.notes.len; i++)
		has_note |= strstr(r.notes.item[i].text, "clock went backwards") != NULL;
	assert_true(has_note);
	release_result(&r);
	free(packet);
	free(twice);
	free(stream);
	free(dir);
}

/* A rotated recording: each packet of the stream is in its own directory. */
static void test_rotated(void **state)
{
	(void)state;
	enum { N = 2 };
	char *parent = path_of("rotated"), *both = many_packets("unrotated", N, 5);
	mkdir(parent, 0755);
	for (size_t i = 0; i < N; i++) {
		char *name = mem_printf("rotated/%zu", i), *dir = many_packets(name, N, 5);
		char *stream = mem_printf("%s/ch_1", dir), *index = mem_printf("%s/index/ch_1.idx", dir);
		size_t len, index_len;
		char *packets = read_whole(stream, &len), *entries = read_whole(index, &index_len);
		write_file(stream, packets + i * CH1_BYTES, CH1_BYTES);
		memmove(entries + 16, entries + 16 + 72 * i, 72);
		memset(entries + 16, 0, 8);  /* the offset */
		write_file(index, entries, 16 + 72);
		free(name);
		free(dir);
		free(stream);
		free(index);
		free(packets);
		free(entries);
	}
	struct result want, got;
	load_trace(both, 1, &want);
	for (unsigned workers = 1; workers < 3; workers++) {
		load_trace(parent, workers, &got);
		assert_int_equal(trace_info(got.trace)->events, N * CH1_EVENTS);
		assert_int_equal(trace_info(got.trace)->lost, trace_info(want.trace)->lost);
		assert_same_events(want.trace, got.trace, ALL_KINDS);
		release_result(&got);
	}
	release_result(&want);
	struct trace_spec *spec = NULL;
	size_t n = 0;
	struct error err = ERROR_INIT;
	assert_int_equal(trace_discover(parent, &spec, &n, NULL, &err), 0);
	assert_int_equal(n, 1);
	assert_string_equal(spec[0].dir, parent);
	trace_specs_free(spec, n);
	free(parent);
	free(both);
}

static bool has_damage(const struct notes *notes)
{
	for (size_t i = 0; i < notes->len; i++)
		if (notes->item[i].kind == NOTE_KIND_DAMAGE)
			return true;
	return false;
}

/* Finds the packet after damage at any distance, and a packet of another stream is damage: large files are searched in
 * blocks. */
static void test_packets_after_damage(void **state)
{
	(void)state;
	static const size_t block = 65536, length[] = { 1, 3, 4, 5000, 65532, 65533, 65534, 65535, 65536, 65537, 3 * 65536 };
	char *dir = many_packets("far", 2, 0), *path = mem_printf("%s/ch_1", dir);
	delete(dir, "index");
	size_t len;
	char *packets = read_whole(path, &len);
	for (size_t i = 0; i < COUNT(length); i++) {
		char *all = mem_new(len + length[i], 1);
		memcpy(all, packets, CH1_BYTES);
		memset(all + CH1_BYTES, 0xc1, length[i]);  /* the first byte of a packet */
		memcpy(all + CH1_BYTES + length[i], packets + CH1_BYTES, CH1_BYTES);
		write_file(path, all, len + length[i]);
		struct result r;
		load_trace(dir, 2, &r);
		assert_int_equal(trace_info(r.trace)->events, 2 * CH1_EVENTS);
		assert_true(has_damage(&r.notes) && r.count[EV_LOST] > 0);
		release_result(&r);
		free(all);
	}
	assert_int_equal(CH1_BYTES % block, 0);
	free(packets);
	free(path);
	free(dir);
}

/* A packet that claims to extend beyond the next one, or beyond the file. */
static void test_wrong_size(void **state)
{
	(void)state;
	enum { AT_SIZE = 56 };
	for (int last = 0; last < 2; last++) {
		char *dir = many_packets(last ? "size-last" : "size", 3, 0), *path = mem_printf("%s/ch_1", dir);
		delete(dir, "index");
		size_t len;
		char *packets = read_whole(path, &len);
		add64(packets + (last ? 2 : 1) * (size_t)CH1_BYTES + AT_SIZE, 64 * CH1_BYTES);
		write_file(path, packets, len);
		struct result r;
		load_trace(dir, 1, &r);
		assert_true(has_damage(&r.notes));
		assert_int_equal(trace_info(r.trace)->events, (last ? 3 : 2) * CH1_EVENTS);
		release_result(&r);
		free(packets);
		free(path);
		free(dir);
	}
}

/* Reads a trace with more streams than a process may have open files. */
static void test_many_streams(void **state)
{
	(void)state;
	enum { N = 600, AT_INSTANCE = 24 };
	char *dir = copy_trace("streams", "host"), *stream = mem_printf("%s/ch_0", dir);
	size_t len;
	char *packet = read_whole(stream, &len);
	delete(dir, "index");
	delete(dir, "ch_0");
	delete(dir, "ch_1");
	for (uint64_t i = 0; i < N; i++) {
		char *path = mem_printf("%s/s%03u", dir, (unsigned)i);
		uint64_t id = htole64(i);
		memcpy(packet + AT_INSTANCE, &id, 8);
		write_file(path, packet, len);
		free(path);
	}
	struct rlimit old, few = { 100, 100 };
	getrlimit(RLIMIT_NOFILE, &old);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	struct result r;
	load_trace(dir, 2, &r);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(trace_info(r.trace)->events, N * (18213 - CH1_EVENTS));
	release_result(&r);
	free(packet);
	free(stream);
	free(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_old_tracer),
		cmocka_unit_test(test_shared_stream),
		cmocka_unit_test(test_lost_events),
		cmocka_unit_test(test_damaged_packet),
		cmocka_unit_test(test_cut_last_packet),
		cmocka_unit_test(test_clock_backwards),
		cmocka_unit_test(test_rotated),
		cmocka_unit_test(test_packets_after_damage),
		cmocka_unit_test(test_wrong_size),
		cmocka_unit_test(test_many_streams),
	};
	alarm(timeout_seconds(200));  /* ends the test if a reader hangs */
	return cmocka_run_group_tests_name("trace: packets", tests, files_begin, files_end);
}
