#include "sync/seen/mark_log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/scratch.h"

static const size_t block_bytes = MARK_LOG_BLOCK * sizeof(struct sync_mark);

static int write_block(struct mark_log *l, struct error *err)
{
	if (!l->has_file && (l->file = scratch_open(NULL, err)) < 0)
		return -1;
	l->has_file = true;
	if (scratch_write(l->file, l->block, block_bytes, (int64_t)(l->blocks * block_bytes), err))
		return -1;
	l->blocks++;
	l->len = 0;
	return 0;
}

int mark_log_add(struct mark_log *l, const struct sync_mark *m, struct error *err)
{
	if (!l->block)
		l->block = mem_new(MARK_LOG_BLOCK, sizeof *l->block);
	if (l->len == MARK_LOG_BLOCK && write_block(l, err))
		return -1;
	l->block[l->len++] = *m;
	return 0;
}

int mark_log_block(const struct mark_log *l, size_t i, struct sync_mark *block, struct error *err)
{
	if (i < l->blocks)
		return scratch_read(l->file, block, block_bytes, (int64_t)(i * block_bytes), err) ? -1 : MARK_LOG_BLOCK;
	if (i > l->blocks || l->len == 0)
		return 0;
	memcpy(block, l->block, l->len * sizeof *block);
	return (int)l->len;
}

void mark_log_release(struct mark_log *l)
{
	if (l->has_file)
		close(l->file);
	free(l->block);
	*l = (struct mark_log){ 0 };
}
