/* Counters of this VM's vCPUs that its host shares through a memory device (base/published_page.h; `monitor --share`).
 *
 * The memory is resource2 of an ivshmem-plain device, or a file. It is mapped once, and stays mapped. Linux's CPU N is
 * vCPU N. */
#include "beacon/live_counters.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"

#define PCI "/sys/bus/pci/devices"
#define IVSHMEM_VENDOR "0x1af4"
#define IVSHMEM_DEVICE "0x1110"
#define STALE_NS NS_PER_S      /* memory without a beat for this long has no host */
#define TRIES 64

static struct {
	_Atomic(const struct published_header *) memory;
	_Atomic bool has_searched;     /* for a device; it is not added later */
	_Atomic uint64_t beat;
	_Atomic int64_t beat_seen;
} live;

/* ---- Finding the memory */

static bool file_contains(const char *device, const char *file, const char *text)
{
	char path[512], found[32];
	snprintf(path, sizeof path, PCI "/%.200s/%s", device, file);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, found, sizeof found - 1);
	if (fd >= 0)
		close(fd);
	found[n > 0 ? n : 0] = '\0';
	return strncmp(found, text, strlen(text)) == 0;
}

static int open_device(void)
{
	DIR *d = opendir(PCI);
	int fd = -1;
	for (const struct dirent *e; d && fd < 0 && (e = readdir(d));) {
		char path[512];
		if (!file_contains(e->d_name, "vendor", IVSHMEM_VENDOR) || !file_contains(e->d_name, "device", IVSHMEM_DEVICE))
			continue;
		snprintf(path, sizeof path, PCI "/%.200s/resource2", e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (d)
		closedir(d);
	return fd;
}

void live_shared_open(const char *path)
{
	struct stat st;
	if (atomic_load(&live.memory) || (!path && atomic_exchange(&live.has_searched, true)))
		return;
	const int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : open_device();
	void *p = MAP_FAILED;
	/* Another user could truncate a file: reading it after that would kill the process. */
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)SHARED_BYTES &&
	    (st.st_uid == 0 || st.st_uid == geteuid()) && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		p = mmap(NULL, SHARED_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p != MAP_FAILED)
		atomic_store_explicit(&live.memory, p, memory_order_release);
}

/* ---- Reading */

static bool memory_is_valid(int64_t now)
{
	const struct published_header *h = atomic_load_explicit(&live.memory, memory_order_acquire);
	if (!h || h->magic != PUBLISHED_MAGIC || h->version != PUBLISHED_VERSION || h->source != SRBN_SOURCE_SHARED ||
	    *(const volatile unsigned *)&h->closed)
		return false;
	const uint64_t beat = *(const volatile unsigned long long *)&h->beat;
	if (beat != atomic_load_explicit(&live.beat, memory_order_relaxed)) {
		atomic_store_explicit(&live.beat_seen, now, memory_order_relaxed);
		atomic_store_explicit(&live.beat, beat, memory_order_relaxed);
	}
	return now - atomic_load_explicit(&live.beat_seen, memory_order_relaxed) < STALE_NS;
}

/* Copies an entry of 128 bytes that begins with its sequence number. Returns false if it changes all the time. */
static bool copy_entry(size_t at, void *copy)
{
	const char *memory = (const char *)atomic_load_explicit(&live.memory, memory_order_acquire);
	const uint32_t *from = (const uint32_t *)(const void *)(memory + at);
	uint32_t *to = copy;
	for (int i = 0; i < TRIES; i++) {
		const uint32_t seq = __atomic_load_n(from, __ATOMIC_ACQUIRE);
		if (seq & 1)
			continue;
		for (size_t k = 0; k < PUBLISHED_ENTRY_BYTES / sizeof *from; k++)
			to[k] = __atomic_load_n(from + k, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(from, __ATOMIC_RELAXED) == seq)
			return seq != 0;
	}
	return false;
}

bool live_shared_read(unsigned cpu, struct live_counters *c)
{
	struct published_thread e;
	if (!memory_is_valid(c->now) || cpu >= PUBLISHED_ENTRIES - 1 ||
	    !copy_entry((cpu + 1) * sizeof e, &e) || e.tid != cpu + 1)
		return false;
	const struct published_header *h = atomic_load(&live.memory);
	/* The vCPU may have lost time while it executed another thread, so this is a maximum only. */
	c->value[PUBLISHED_MIXED] = (int64_t)e.counter[PUBLISHED_STOLEN];
	c->value[PUBLISHED_THROTTLED] = (int64_t)e.counter[PUBLISHED_THROTTLED];
	c->value[PUBLISHED_UNKNOWN] = (int64_t)e.counter[PUBLISHED_UNKNOWN];
	c->lag = clamp64((int64_t)h->resolution, 0, NS_PER_S);
	c->session = h->session << 8 ^ cpu;
	c->source = SRBN_SOURCE_SHARED;
	c->flags = 0;
	return true;
}

bool live_shared_has(unsigned cpu, int64_t now)
{
	struct live_counters c = { .now = now };
	return live_shared_read(cpu, &c);
}

void live_shared_culprit(unsigned cpu, int64_t now, char name[128])
{
	struct shared_culprit s;
	*name = '\0';
	if (!memory_is_valid(now) || cpu >= PUBLISHED_ENTRIES - 1 ||
	    !copy_entry(PUBLISHED_BYTES + (cpu + 1) * sizeof s, &s) || !s.took)
		return;
	s.name[SHARED_NAME - 1] = '\0';
	for (char *at = s.name; *at; at++)
		*at = *at >= ' ' && *at != 0x7f ? *at : '?';
	snprintf(name, 128, "%s", s.name);
}
