/* The windows of an xentrace file. */
#include "trace/xen/xen.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define HEADER 12                /* size of a CPU_CHANGE record, bytes */
#define CPU_CHANGE_WORD 0x2001f003U
#define WINDOW_MAX (1U << 30)    /* larger windows are damage, bytes */
#define LINKS_MIN 3              /* number of windows that prove the format, if the file has as many */

static struct xen_pcpu *pcpu_get(struct xen_file *f, uint16_t number)
{
	for (size_t i = 0; i < f->pcpus; i++)
		if (f->pcpu[i].number == number)
			return &f->pcpu[i];
	struct xen_pcpu *p = ARRAY_PUSH(f->pcpu, f->pcpus, f->pcpus_cap);
	*p = (struct xen_pcpu){ .number = number };
	return p;
}

static void add_window(struct xen_file *f, uint16_t number, uint64_t at, uint64_t bytes)
{
	struct xen_pcpu *p = pcpu_get(f, number);
	p->bytes += bytes;
	if (bytes)
		*ARRAY_PUSH(p->window, p->windows, p->windows_cap) = (struct xen_window){ at, bytes };
}

int xen_file_scan(struct xen_file *f, int fd)
{
	struct stat st;
	if (fstat(fd, &st))
		return -1;
	f->bytes = (uint64_t)st.st_size;
	uint64_t at = 0;
	while (at < f->bytes && !f->damage) {
		uint32_t word[3];
		const ssize_t got = pread(fd, word, sizeof word, (off_t)at);
		if (got < 0)
			return -1;
		const uint32_t number = le32toh(word[1]), bytes = le32toh(word[2]);
		f->damaged_at = at;
		if (got < (ssize_t)sizeof word) {
			f->damage = "the file ends inside a record";
		} else if (le32toh(word[0]) != CPU_CHANGE_WORD || number >= XEN_PCPUS_MAX || bytes % 4 || bytes > WINDOW_MAX) {
			f->damage = "a CPU_CHANGE record is missing";
		} else if (bytes > f->bytes - at - HEADER) {
			add_window(f, (uint16_t)number, at + HEADER, f->bytes - at - HEADER);
			f->damage = "the file ends inside a window";
		} else {
			add_window(f, (uint16_t)number, at + HEADER, bytes);
			at += HEADER + (uint64_t)bytes;
		}
	}
	return 0;
}

bool xen_file_is_plausible(const struct xen_file *f)
{
	size_t windows = 0;
	for (size_t i = 0; i < f->pcpus; i++)
		windows += f->pcpu[i].windows + !f->pcpu[i].windows;
	return windows >= LINKS_MIN || !f->damage;
}

void xen_file_release(struct xen_file *f)
{
	for (size_t i = 0; i < f->pcpus; i++)
		free(f->pcpu[i].window);
	free(f->pcpu);
	xen_texts_release(&f->texts);
	*f = (struct xen_file){ 0 };
}
