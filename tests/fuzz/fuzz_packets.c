/* Fuzz target: input as LTTng's index and the CTF stream. The first two bytes contain the length of the index / 8. */
#include <stdlib.h>
#include <string.h>

#include "trace/ctf/stream_file.h"
#include "fuzz_replay.h"

/* Checks that packets are inside the file and in order. */
static void check_packets(const struct stream_file *f)
{
	uint64_t end = 0;
	for (size_t i = 0; i < f->packets; i++) {
		const struct packet *p = &f->packet[i];
		if (p->offset < end || p->size > f->bytes || p->offset > f->bytes - p->size)
			abort();
		end = p->offset + p->size;
	}
	if (f->packets > 0 && f->index_damaged)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	const size_t index_size = ((size_t)data[0] << 8 | data[1]) * 8, n = index_size < size - 2 ? index_size : size - 2;
	const char *dir = replay_dir((const struct replay_file[]){
		{ "index/stream.idx", data + 2, n }, { "stream", data + 2 + n, size - 2 - n } }, 2);
	struct stream_file *list;
	size_t files;
	if (stream_files_list(dir, &list, &files))
		abort();
	for (size_t i = 0; i < files; i++) {
		stream_file_read_index(&list[i]);
		check_packets(&list[i]);
	}
	if (files && !stream_files_same(list, files, list, files))
		abort();
	stream_files_free(list, files);
	return 0;
}
