/* Parts of the time of a server, exact to the ns: the parts of its threads are read one after the other and, if there are
 * several, combined by a sweep over their ends. Cost: O(n log n) for n parts. */
#include "base/base.h"
#include "latency/attribution.h"

#define PART_NAME(code, name) name,
const char *const request_part_name[REQUEST_PART_COUNT] = { REQUEST_PARTS(PART_NAME) };
#undef PART_NAME

/* A thread enters a part (sign 1) at t, or leaves it (-1). */
struct part_change { int64_t t; enum request_part part; int sign; };
struct part_list { struct part_change *item; size_t len, cap; };

static void list_part(void *arg, enum request_part part, int64_t start, int64_t end)
{
	struct part_list *l = arg;
	*ARRAY_PUSH(l->item, l->len, l->cap) = (struct part_change){ start, part, 1 };
	*ARRAY_PUSH(l->item, l->len, l->cap) = (struct part_change){ end + 1, part, -1 };
}

/* Moves a part from unknown, in which all time is at the beginning. */
static void move_part(void *arg, enum request_part part, int64_t start, int64_t end)
{
	struct request_parts *parts = arg;
	parts->ns[part] += end - start + 1;
	parts->ns[PART_UNKNOWN] -= end - start + 1;
}

ORDER_BY(by_time, struct part_change, RISING(t))

/* Adds each interval to the first part that a thread is in; to unknown if there is none. */
static void sum_list(struct part_list *l, int64_t start, int64_t end, struct request_parts *out)
{
	int64_t t = start, count[REQUEST_PART_COUNT] = { 0 };
	ARRAY_SORT(l->item, l->len, by_time);
	for (size_t i = 0; i <= l->len; i++) {
		const int64_t next = i < l->len ? l->item[i].t : end + 1;
		unsigned part = 0;
		while (part < REQUEST_PART_COUNT && count[part] == 0)
			part++;
		out->ns[part < REQUEST_PART_COUNT ? part : PART_UNKNOWN] += next - t;
		t = next;
		if (i < l->len)
			count[l->item[i].part] += l->item[i].sign;
	}
}

int request_parts_add(const struct catalog *catalog, const uint32_t *thread, size_t threads, int64_t start, int64_t end,
                      struct request_parts *out, struct error *err)
{
	struct part_list list = { 0 };
	int rc = 0;
	if (threads == 1) {
		struct request_parts parts = { { [PART_UNKNOWN] = end - start + 1 } };  /* until move_part() moves it */
		rc = attribute_parts(catalog, thread[0], start, end, move_part, &parts, err);
		for (unsigned i = 0; i < REQUEST_PART_COUNT; i++)
			out->ns[i] += parts.ns[i];
		return rc;
	}
	for (size_t i = 0; i < threads && rc == 0; i++)
		rc = attribute_parts(catalog, thread[i], start, end, list_part, &list, err);
	if (rc == 0)
		sum_list(&list, start, end, out);
	free(list.item);
	return rc;
}
