#include "trace/perf/perf_sample.h"

#define SAMPLE_TRAILER (SAMPLE_TID | SAMPLE_TIME | SAMPLE_ID | SAMPLE_STREAM_ID | SAMPLE_CPU | SAMPLE_IDENTIFIER)

/* Returns the number of 8-byte fields of these kinds. */
static size_t count_fields(uint64_t sample_type, uint64_t kinds)
{
	return (size_t)__builtin_popcountll(sample_type & kinds);
}

/* Finds the attribute of a sample by the id in it. perf chooses equal positions of the id for all events. */
static const struct perf_attr *sample_attr(const struct perf_file *f, const struct perf_record *rec)
{
	const struct perf_attr *first = f->attr;
	struct perf_position p = perf_position_of(rec, f->big_endian);
	if (f->attrs == 1)
		return first;
	if (!(first->sample_type & (SAMPLE_IDENTIFIER | SAMPLE_ID)))
		return NULL;
	if (!(first->sample_type & SAMPLE_IDENTIFIER))
		perf_get_bytes(&p, 8 * count_fields(first->sample_type, SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDR));
	const uint64_t id = perf_get64(&p);
	return p.is_bad ? NULL : perf_attr_find(f, id);
}

static void get_thread(struct perf_position *p, struct perf_sample *s)
{
	s->pid = (int32_t)perf_get32(p);
	s->tid = (int32_t)perf_get32(p);
}

/* Stores a counter's value, if it is one of the two that are known. */
static void set_counter(const struct perf_attr *attr, uint64_t value, struct perf_sample *s)
{
	if (!attr || attr->type != PERF_HARDWARE)
		return;
	const int64_t n = value > INT64_MAX ? EVENT_ABSENT : (int64_t)value;
	if ((uint32_t)attr->config == PERF_INSTRUCTIONS)  /* the upper half identifies the kind of CPU */
		s->instructions = n;
	else if ((uint32_t)attr->config == PERF_CYCLES)
		s->cycles = n;
}

static void get_counters(const struct perf_file *f, struct perf_position *p, struct perf_sample *s)
{
	const uint64_t format = s->attr->read_format;
	const bool is_group = format & READ_GROUP;
	uint64_t values = 1, value = 0;
	if (is_group)
		values = perf_get64(p);
	else
		value = perf_get64(p);
	const uint64_t enabled = format & READ_TIME_ENABLED ? perf_get64(p) : 0;
	const uint64_t running = format & READ_TIME_RUNNING ? perf_get64(p) : enabled;
	for (; values && !p->is_bad; values--) {
		if (is_group)
			value = perf_get64(p);
		const uint64_t id = format & READ_ID ? perf_get64(p) : 0;
		if (format & READ_LOST)
			perf_get64(p);
		if (!p->is_bad)
			set_counter(format & READ_ID ? perf_attr_find(f, id) : s->attr, value, s);
	}
	if (running < enabled)  /* the counters were also used by other events, so these values are too small */
		s->instructions = s->cycles = EVENT_ABSENT;
}

bool perf_sample_parse(const struct perf_file *f, const struct perf_record *rec, struct perf_sample *s)
{
	struct perf_position p = perf_position_of(rec, f->big_endian);
	*s = (struct perf_sample){ .cpu = UINT32_MAX, .pid = -1, .tid = -1, .instructions = EVENT_ABSENT,
		.cycles = EVENT_ABSENT };
	s->attr = sample_attr(f, rec);
	if (!s->attr)
		return false;
	const uint64_t type = s->attr->sample_type;
	perf_get_bytes(&p, 8 * count_fields(type, SAMPLE_IDENTIFIER | SAMPLE_IP));
	if (type & SAMPLE_TID)
		get_thread(&p, s);
	if (type & SAMPLE_TIME)
		s->time = perf_get64(&p);
	perf_get_bytes(&p, 8 * count_fields(type, SAMPLE_ADDR | SAMPLE_ID | SAMPLE_STREAM_ID));
	if (type & SAMPLE_CPU) {
		s->cpu = perf_get32(&p);
		perf_get32(&p);
	}
	perf_get_bytes(&p, 8 * count_fields(type, SAMPLE_PERIOD));
	if (type & SAMPLE_READ)
		get_counters(f, &p, s);
	if (type & SAMPLE_CALLCHAIN) {
		const uint64_t n = perf_get64(&p);
		perf_get_bytes(&p, n > PERF_RECORD_MAX ? UINT64_MAX : 8 * n);
	}
	if (type & SAMPLE_RAW) {
		s->raw_size = perf_get32(&p);
		s->raw = perf_get_bytes(&p, s->raw_size);
	}
	return !p.is_bad;
}

bool perf_sample_has_namespace(const struct perf_file *f, const struct perf_sample *s)
{
	if (s->attr->type != PERF_TRACEPOINT || !s->raw || s->raw_size < 8 || s->tid < 0)
		return false;
	/* All tracepoints begin with the same fields: common_type, common_flags, common_preempt_count, common_pid. */
	struct perf_position p = { s->raw + 4, s->raw + 8, f->big_endian, false };
	return (int32_t)perf_get32(&p) != s->tid;
}

/* Returns the sample_type of a record's event. Records without an id belong to the first event. */
static uint64_t trailer_fields(const struct perf_file *f, const struct perf_record *rec)
{
	const uint64_t first = f->attr[0].sample_type;
	if (!(first & SAMPLE_IDENTIFIER) || rec->size < 8)
		return first;
	struct perf_position last = { rec->body + rec->size - 8, rec->body + rec->size, f->big_endian, false };
	const struct perf_attr *attr = perf_attr_find(f, perf_get64(&last));
	return attr ? attr->sample_type : first;
}

bool perf_trailer_parse(const struct perf_file *f, const struct perf_record *rec, struct perf_sample *s, size_t *body)
{
	*s = (struct perf_sample){ .cpu = UINT32_MAX, .pid = -1, .tid = -1, .instructions = EVENT_ABSENT,
		.cycles = EVENT_ABSENT };
	*body = rec->size;
	if (!f->attrs || !f->attr[0].has_trailer)
		return false;
	const uint64_t type = trailer_fields(f, rec);
	const size_t size = 8 * count_fields(type, SAMPLE_TRAILER);
	if (size > rec->size)
		return false;
	*body = rec->size - size;
	struct perf_position p = { rec->body + *body, rec->body + rec->size, f->big_endian, false };
	if (type & SAMPLE_TID)
		get_thread(&p, s);
	if (type & SAMPLE_TIME)
		s->time = perf_get64(&p);
	if (type & SAMPLE_ID)
		s->id = perf_get64(&p);
	if (type & SAMPLE_STREAM_ID)
		perf_get64(&p);
	if (type & SAMPLE_CPU) {
		s->cpu = perf_get32(&p);
		perf_get32(&p);
	}
	if (type & SAMPLE_IDENTIFIER)
		s->id = perf_get64(&p);
	s->attr = perf_attr_find(f, s->id);
	return true;
}
