/* Fuzz target: input as a perf.data file: descriptions, records, samples, order. The tracepoints are not decoded. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/perf/perf_queue.h"
#include "trace/perf/perf_sample.h"
#include "fuzz_replay.h"

struct counting_sink { struct event_sink sink; uint64_t events; uint32_t streams; };

static int put(struct event_sink *o, const struct event *ev)
{
	if (ev->kind == EV_LOST && ev->lost.end < ev->ts)
		abort();
	((struct counting_sink *)o)->events += ev->kind != EV_LOST;
	return 0;
}

static int select_stream(struct event_sink *o, uint32_t number, uint64_t order)
{
	struct counting_sink *c = (struct counting_sink *)o;
	if (number > c->streams || order > UINT16_MAX)
		abort();
	c->streams += number == c->streams;
	return 0;
}

static void use_record(const struct perf_file *f, const struct perf_record *rec, struct perf_queue *q, uint64_t *put_events)
{
	struct perf_sample s;
	size_t body;
	if (rec->type == RECORD_FINISHED_ROUND) {
		perf_queue_end_round(q);
	} else if (rec->type == RECORD_SAMPLE) {
		if (!perf_sample_parse(f, rec, &s))
			perf_queue_lose_all(q);
		if (!s.attr || s.time > INT64_MAX)
			return;
		if (s.raw && (s.raw < rec->body || s.raw + s.raw_size > rec->body + rec->size))
			abort();
		++*put_events;
		perf_queue_put(q, &(struct event){ .ts = (int64_t)s.time, .kind = EV_OTHER, .cpu = (uint16_t)s.cpu });
	} else if (perf_trailer_parse(f, rec, &s, &body)) {
		if (body > rec->size)
			abort();
		if (rec->type == RECORD_LOST)
			perf_queue_lose(q, (uint16_t)s.cpu, (int64_t)(s.time & INT64_MAX), (int64_t)(s.time >> 60));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct event_sink_ops ops = { put, select_stream, NULL, NULL, NULL };
	int fd, got;
	struct error err = ERROR_INIT;
	struct counting_sink sink = { .sink = { .ops = &ops, .err = &err } };
	struct perf_file *f = perf_file_read(replay_file(data, size, &fd), &err);
	if (!f && err.status != STATUS_INPUT)
		abort();
	if (f) {
		struct perf_records r;
		struct perf_record rec;
		struct perf_queue q;
		uint64_t events = 0;
		perf_queue_open(&q, &sink.sink);
		perf_records_open(&r, f, fd, f->data_at, f->data_end);
		while ((got = perf_records_next(&r, &rec)) > 0)
			use_record(f, &rec, &q, &events);
		if (got < 0 || perf_queue_close(&q) || sink.events != events)
			abort();
		perf_records_close(&r);
	}
	perf_file_free(f);
	close(fd);
	return 0;
}
