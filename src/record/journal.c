#include "record/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/proc.h"

#define DIR "/run/stealscope"
#define MAX_GUESTS 4096

/* Opens the directory of journals, which it creates if necessary. Returns -1 if other users can write to it. */
static int open_dir(const char *root, struct error *err)
{
	char *path = mem_printf("%s" DIR, root);
	struct stat st;
	mkdir(path, 0700);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		error_system(err, geteuid() ? "run as root" : "create the directory above it", "cannot open %s", path);
	} else if (fstat(fd, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & 022)) {
		error_set(err, STATUS_SYSTEM, "remove it", "%s: the directory is not owned by this user, or others can write to it",
		          path);
		close(fd);
		fd = -1;
	}
	free(path);
	return fd;
}

void journal_add_guest(struct journal *s, const char *name, const char *transport)
{
	*ARRAY_PUSH(s->guest, s->guests, s->cap) = (struct journal_guest){ mem_dup(name), mem_dup(transport) };
}

/* Writes one line; skips values that contain a line break. */
static void put_line(FILE *f, const char *key, const char *value)
{
	if (!strchr(value, '\n'))
		fprintf(f, "%s %s\n", key, value);
}

int journal_write(const char *root, struct journal *s, struct error *err)
{
	const int dir = open_dir(root, err);
	char name[64];
	if (dir < 0)
		return -1;
	snprintf(name, sizeof name, "%d-%llu", (int)getpid(), (unsigned long long)proc_start_time("", (int32_t)getpid()));
	const int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	close(dir);
	if (!f)
		return error_system(err, NULL, "cannot create " DIR "/%s", name);
	free(s->path);
	s->path = mem_printf("%s" DIR "/%s", root, name);
	put_line(f, "folder", s->dir);
	for (size_t i = 0; i < s->guests; i++) {
		put_line(f, "guest", s->guest[i].name);
		put_line(f, "transport", s->guest[i].transport);
	}
	return fclose(f) == 0 ? 0 : error_system(err, NULL, "cannot write %s", s->path);
}

void journal_remove(struct journal *s)
{
	if (s->path)
		unlink(s->path);
}

void journal_release(struct journal *s)
{
	for (size_t i = 0; i < s->guests; i++) {
		free(s->guest[i].name);
		free(s->guest[i].transport);
	}
	free(s->guest);
	free(s->path);
	free(s->dir);
	*s = (struct journal){ 0 };
}

static struct journal parse_journal(char *path, const char *text)
{
	struct journal s = { .path = path };
	char *name = NULL;
	while (*text) {
		const size_t n = strcspn(text, "\n"), key = strcspn(text, " \n");
		char *value = mem_printf("%.*s", key < n ? (int)(n - key - 1) : 0, text + key + (key < n));
		if (strncmp(text, "folder ", 7) == 0 && !s.dir) {
			s.dir = mem_dup(value);
		} else if (strncmp(text, "guest ", 6) == 0) {
			free(name);
			name = mem_dup(value);
		} else if (strncmp(text, "transport ", 10) == 0 && name && s.guests < MAX_GUESTS) {
			journal_add_guest(&s, name, value);
		}
		free(value);
		text += n + (text[n] == '\n');
	}
	free(name);
	return s;
}

struct journal *journal_stale(const char *root, size_t *n)
{
	struct journal *stale = NULL;
	size_t names, cap = 0;
	const int dir = open_dir(root, NULL);
	*n = 0;
	if (dir < 0)
		return NULL;
	close(dir);
	char **name = proc_names(root, "", &names, DIR);
	for (size_t i = 0; i < names; i++) {
		char *dash = strchr(name[i], '-'), *text = NULL;
		uint64_t pid, begun;
		if (!dash)
			continue;
		*dash = '\0';
		if (proc_parse_number(name[i], INT32_MAX, &pid) && proc_parse_number(dash + 1, UINT64_MAX, &begun) &&
		    proc_start_time("", (int32_t)pid) != begun)
			text = proc_text(root, NULL, DIR "/%s-%s", name[i], dash + 1);
		if (text)
			*ARRAY_PUSH(stale, *n, cap) = parse_journal(mem_printf("%s" DIR "/%s-%s", root, name[i], dash + 1), text);
		free(text);
	}
	proc_names_free(name, names);
	return stale;
}
