#include "record/elf_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/sandbox.h"

#define FILE_MAX ((size_t)1 << 30)         /* a file's maximum size, bytes */
#define READER_TIMEOUT (30 * NS_PER_S)
#define TICK_MS 100                        /* between two looks at *stop */
#define WANTED_BYTES_MAX ((size_t)32 << 20)   /* maximum bytes of the wanted places */
#define ALL_BYTES_RATIO 8                  /* the same of all places, as a ratio to the file's size */

/* What a child sends: a head, then its places, each with its texts: provider, name, arguments. */
struct wire_head { int32_t failed; uint32_t machine; uint64_t skipped, places; char why[256]; };
struct wire_place { uint64_t offset, counter; uint32_t len[3]; };  /* len: bytes with the NUL; 0: no such text */

/* ---- the child */

static int send_places(FILE *f, const struct elf_places *p, bool failed, const struct error *err)
{
	struct wire_head head = { .failed = failed, .machine = p->machine, .skipped = p->skipped, .places = p->len };
	snprintf(head.why, sizeof head.why, "%.255s", err->text);
	fwrite(&head, sizeof head, 1, f);
	for (size_t i = 0; i < p->len; i++) {
		const struct elf_place *e = &p->place[i];
		const char *const text[] = { e->provider, e->name, e->args };
		struct wire_place w = { .offset = e->offset, .counter = e->counter };
		for (int k = 0; k < 3; k++)
			w.len[k] = text[k] ? (uint32_t)strlen(text[k]) + 1 : 0;
		fwrite(&w, sizeof w, 1, f);
		for (int k = 0; k < 3; k++)
			if (text[k])
				fwrite(text[k], 1, w.len[k], f);
	}
	return fclose(f);
}

/* Reads the whole file: a mapping would raise SIGBUS if a container truncates the file meanwhile. */
static char *read_file(int fd, size_t size, size_t *len)
{
	char *data = mem_resize(NULL, size, 1);
	ssize_t n = 0;
	for (*len = 0; *len < size && (n = pread(fd, data + *len, size - *len, (off_t)*len)) > 0;)
		*len += (size_t)n;
	if (n < 0) {
		free(data);
		return NULL;
	}
	return data;
}

/* Closes all descriptors but two, which the parsers must not reach: those of tracefs, guests and recordings. */
static void close_others(int a, int b)
{
	const int low = a < b ? a : b, high = a < b ? b : a;
	if (low > 3)
		syscall(SYS_close_range, 3U, (unsigned)low - 1, 0U);
	if (high > low + 1)
		syscall(SYS_close_range, (unsigned)(low < 3 ? 3 : low + 1), (unsigned)high - 1, 0U);
	syscall(SYS_close_range, (unsigned)high + 1, ~0U, 0U);
}

static _Noreturn void run_child(const struct elf_source *s, size_t size, int out)
{
	struct elf_places p = { 0 };
	struct error err = ERROR_INIT;
	close_others(s->fd, out);
	sandbox_enter(&(struct sandbox){ .bytes = size });
	size_t len = size;
	char *copy = s->fd >= 0 ? read_file(s->fd, size, &len) : NULL;
	int rc = 0;
	if (s->fd >= 0 && !copy)
		rc = error_system(&err, NULL, "cannot read %s", s->path);
	else
		rc = elf_places_parse(&p, copy ? copy : s->data, len, s->path, &s->filter, &err);
	FILE *f = fdopen(out, "wb");
	_exit(f && send_places(f, &p, rc != 0, &err) == 0 ? 0 : 1);
}

/* ---- the parent */

int elf_reader_start(struct elf_reader *r, const struct elf_source *source, struct error *err)
{
	struct stat st = { .st_size = (off_t)source->size };
	int fd[2];
	*r = (struct elf_reader){ .fd = -1 };
	if (source->fd >= 0 && fstat(source->fd, &st))
		return error_system(err, NULL, "cannot read %s", source->path);
	if ((source->fd >= 0 && !S_ISREG(st.st_mode)) || st.st_size <= 0 || (uint64_t)st.st_size > FILE_MAX)
		return error_set(err, STATUS_INPUT, NULL, "%s: not a program or library (ELF)", source->path);
	if (sandbox_check_memory(source->path, err))
		return -1;
	if (pipe2(fd, O_CLOEXEC))
		return error_system(err, NULL, "%s: cannot create a pipe", source->path);
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0)
		run_child(source, (size_t)st.st_size, fd[1]);
	close(fd[1]);
	if (pid < 0) {
		close(fd[0]);
		return error_system(err, NULL, "%s: cannot start a process", source->path);
	}
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	*r = (struct elf_reader){ .source = *source, .pid = pid, .fd = fd[0], .deadline = now_ns() + READER_TIMEOUT };
	r->source.size = (size_t)st.st_size;
	r->source.path = mem_dup(source->path);
	return 0;
}

void elf_reader_end(struct elf_reader *r)
{
	if (!r->pid)
		return;
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	close(r->fd);
	free((char *)r->source.path);
	free(r->data);
	*r = (struct elf_reader){ .fd = -1 };
}

/* Takes a text of n bytes. Returns false if it is not one. */
static bool take_text(const char **at, const char *end, uint32_t n, char **out)
{
	*out = NULL;
	if (n > (size_t)(end - *at) || (n && memchr(*at, '\0', n) != *at + n - 1))
		return false;
	*out = n ? mem_dup(*at) : NULL;
	*at += n;
	return true;
}

/* Parses what the child has sent. Returns false if it is not what it sends. */
static bool take_places(const struct elf_reader *r, struct wire_head *head, struct elf_places *p)
{
	const char *at = r->data, *end = r->data + r->len;
	if (r->len < sizeof *head)
		return false;
	memcpy(head, at, sizeof *head);
	at += sizeof *head;
	head->why[sizeof head->why - 1] = '\0';
	p->machine = head->machine;
	p->skipped = head->skipped;
	while (p->len < head->places) {
		struct wire_place w;
		if ((size_t)(end - at) < sizeof w)
			return false;
		memcpy(&w, at, sizeof w);
		at += sizeof w;
		struct elf_place *e = ARRAY_PUSH(p->place, p->len, p->cap);
		*e = (struct elf_place){ .offset = w.offset, .counter = w.counter };
		char **const text[] = { &e->provider, &e->name, &e->args };
		for (int k = 0; k < 3; k++)
			if (!take_text(&at, end, w.len[k], text[k]))
				return false;
		if (!e->name || !e->provider != !e->args)
			return false;
	}
	return at == end;
}

static int finish(struct elf_reader *r, struct elf_places *p, struct error *err)
{
	struct wire_head head;
	const bool complete = take_places(r, &head, p);
	int rc = 0;
	if (!complete)
		rc = error_set(err, STATUS_INPUT, NULL, "%s: its symbols cannot be read: the process that read them ended early",
		               r->source.path);
	else if (head.failed)
		rc = error_repeat(err, STATUS_INPUT, NULL, "%s", head.why);
	if (rc)
		elf_places_release(p);
	elf_reader_end(r);
	return rc;
}

static int give_up(struct elf_reader *r, const char *why, struct error *err)
{
	error_set(err, STATUS_INPUT, NULL, "%s: its symbols cannot be read: %s", r->source.path, why);
	elf_reader_end(r);
	return -1;
}

int elf_reader_poll(struct elf_reader *r, struct elf_places *p, struct error *err)
{
	const size_t max = r->source.filter.wants ? WANTED_BYTES_MAX : ALL_BYTES_RATIO * r->source.size + WANTED_BYTES_MAX;
	*p = (struct elf_places){ 0 };
	for (;;) {
		if (r->cap - r->len < 65536)
			r->data = mem_resize(r->data, r->cap = 2 * r->cap + 65536, 1);
		const ssize_t n = read(r->fd, r->data + r->len, r->cap - r->len);
		if (n == 0)
			return finish(r, p, err);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return give_up(r, "the pipe to its process failed", err);
		if (n < 0)
			break;
		r->len += (size_t)n;
		if (r->len > max)
			return give_up(r, "it has too many", err);
	}
	return now_ns() < r->deadline ? 1 : give_up(r, "that takes too long", err);
}

int elf_places_read(struct elf_places *p, const struct elf_source *source, const volatile int *stop, struct error *err)
{
	struct elf_reader r;
	int rc = 1;
	*p = (struct elf_places){ 0 };
	if (elf_reader_start(&r, source, err))
		return -1;
	while (rc == 1) {
		struct pollfd fd = { r.fd, POLLIN, 0 };
		poll(&fd, 1, TICK_MS);
		rc = elf_reader_poll(&r, p, err);
		if (rc == 1 && stop && *stop)
			rc = error_set(err, STATUS_CANCELLED, NULL, "stopped while the symbols of %s were read", source->path);
	}
	elf_reader_end(&r);
	return rc;
}
