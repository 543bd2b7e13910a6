/* An xentrace file's windows. */
#include "base/base.h"
#include "trace/xen/xen.h"

#include <endian.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER 12                /* a CPU_CHANGE record's size, bytes */
#define CPU_CHANGE_WORD 0x2001f003U
#define WINDOW_MAX (1U << 30)    /* larger windows are damage, bytes */
#define WINDOWS_MAX (8U << 20)   /* window count; xentrace writes windows of some KiB */
#define LINKS_MIN 3              /* windows that prove the format, if the file has as many */

static struct xen_pcpu *pcpu_get(struct xen_file *f, uint16_t number)
{
	if (f->index[number])
		return &f->pcpu[f->index[number] - 1];
	f->index[number] = (uint16_t)(f->pcpus + 1);
	struct xen_pcpu *p = ARRAY_PUSH(f->pcpu, f->pcpus, f->pcpus_cap);
	*p = (struct xen_pcpu){ .number = number };
	return p;
}

static void add_window(struct xen_file *f, uint16_t number, uint64_t at, uint64_t bytes)
{
	struct xen_pcpu *p = pcpu_get(f, number);
	p->bytes += bytes;
	f->windows++;
	if (bytes)
		*ARRAY_PUSH(p->window, p->windows, p->windows_cap) = (struct xen_window){ at, bytes };
}

/* Gets the TSCs of the first and a window's last record. Returns -1 with errno set if it cannot be read. */
static int scan_window(const struct xen_window *w, int fd, uint64_t *first, uint64_t *last)
{
	unsigned char *buf = mem_new(w->bytes, 1);
	const ssize_t got = pread(fd, buf, w->bytes, (off_t)w->at);
	*first = *last = 0;
	for (size_t at = 0; got > 0 && (size_t)got - at >= 4;) {
		uint32_t word;
		memcpy(&word, buf + at, sizeof word);
		const struct xen_head head = xen_head(le32toh(word));
		const size_t size = xen_record_size(head);
		if ((size_t)got - at < size)
			break;
		if (head.has_tsc && head.record != XEN_WRAP_BUFFER) {
			memcpy(last, buf + at + 4, sizeof *last);
			*last = le64toh(*last);
			*first = *first ? *first : *last;
		}
		at += size;
	}
	free(buf);
	return got < 0 ? -1 : 0;
}

/* Sets the times: a pCPU without records is idle, so all pCPUs are recorded from the first record of any of them. */
static int scan_times(struct xen_file *f, int fd)
{
	f->first = UINT64_MAX;
	for (size_t i = 0; i < f->pcpus; i++) {
		struct xen_pcpu *p = &f->pcpu[i];
		uint64_t ignored;
		for (size_t k = 0; k < p->windows && !p->first; k++)
			if (scan_window(&p->window[k], fd, &p->first, &ignored))
				return -1;
		for (size_t k = p->windows; k-- > 0 && !p->last;)
			if (scan_window(&p->window[k], fd, &ignored, &p->last))
				return -1;
		f->first = p->first && p->first < f->first ? p->first : f->first;
		f->last = p->last > f->last ? p->last : f->last;
	}
	return 0;
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
		if (f->windows >= WINDOWS_MAX) {
			f->damage = "the file contains too many windows";
		} else if (got < (ssize_t)sizeof word) {
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
	return scan_times(f, fd);
}

bool xen_file_is_plausible(const struct xen_file *f)
{
	return f->windows >= LINKS_MIN || !f->damage;
}

void xen_file_release(struct xen_file *f)
{
	for (size_t i = 0; i < f->pcpus; i++)
		free(f->pcpu[i].window);
	free(f->pcpu);
	xen_texts_release(&f->texts);
	*f = (struct xen_file){ 0 };
}
