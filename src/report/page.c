#include "report/page.h"

#include "base/hash.h"
#include "report/writer.h"

/* Parses "1000-0123456789abcdef". */
static bool parse_next(const char *text, uint64_t *rows, uint64_t *hash)
{
	char canonical[PAGE_TEXT], *rest = NULL;
	*rows = strtoull(text, &rest, 10);
	*hash = *rest == '-' ? strtoull(rest + 1, NULL, 16) : 0;
	snprintf(canonical, sizeof canonical, "%" PRIu64 "-%016" PRIx64, *rows, *hash);
	return strcmp(text, canonical) == 0 && *rows > 0;
}

void page_begin(struct row_page *p, struct report_how how, const char *name)
{
	*p = (struct row_page){ .to = UINT64_MAX, .hash = hash_text(HASH_BEGIN, name), .paged = how.format == FORMAT_JSON };
	if (!p->paged && (how.after || (how.limit && how.limit != REPORT_PAGE)))
		p->remedy = "only json answers have pages: use --format json";
	else if (how.after && !parse_next(how.after, &p->from, &p->expected))
		p->remedy = "use the member `next` of the previous page";
	if (how.limit && p->paged && p->from < UINT64_MAX - how.limit)
		p->to = p->from + how.limit;
}

static uint64_t hash_row(uint64_t h, const struct report_shape *shape, const struct value *value)
{
	struct field_buffer field = { .longer = NULL };
	for (size_t i = 0; i < shape->columns; i++)
		if (shape->column[i].name)
			h = hash_bytes(hash_text(h, field_format(&shape->column[i], &value[i], false, &field)), "", 1);
	field_release(&field);
	return h;
}

static const char *const changed =
	"the answer has changed, or --after belongs to another answer: start again without --after";

bool page_count_row(struct row_page *p, const struct report_shape *shape, const struct value *value)
{
	const uint64_t at = p->rows_read++;
	if (at == p->from && p->from && p->hash != p->expected && !p->remedy)
		p->remedy = changed;
	if (p->remedy || at >= p->to)
		return false;
	if (p->paged)
		p->hash = hash_row(p->hash, shape, value);
	return at >= p->from;
}

int page_end(struct row_page *p, char next[PAGE_TEXT], struct error *err)
{
	*next = '\0';
	if (!p->remedy && p->rows_read <= p->from && p->from)
		p->remedy = changed;
	if (p->remedy)
		return error_set(err, STATUS_USAGE, p->remedy, "--limit, --after: no such page");
	if (p->rows_read > p->to)
		snprintf(next, PAGE_TEXT, "%" PRIu64 "-%016" PRIx64, p->to, p->hash);
	return 0;
}
