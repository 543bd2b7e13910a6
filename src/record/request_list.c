/* What requests can be recorded: the shipped tables, and the functions and static probes of a program. */
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "record/elf_reader.h"
#include "record/record.h"
#include "record/request_kinds.h"

bool record_request_table(size_t i, struct record_request_table *out)
{
	const char *name = request_kind_shipped(i);
	struct request_kind *k = name ? request_kind_parse(name, NULL) : NULL;
	if (!k)
		return false;
	*out = (struct record_request_table){ name, mem_dup(k->programs ? k->program[0] : ""),
	                                      mem_dup(k->about ? k->about : "") };
	request_kind_free(k);
	return true;
}

int record_list_places(const char *path, void (*on_place)(void *arg, const struct record_place *p), void *arg,
                       struct error *err)
{
	char shown[300];
	struct elf_places all;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	text_escape(shown, sizeof shown, path);
	if (fd < 0)
		return error_read(err, NULL, "cannot read %s", shown);
	const int rc = elf_places_read(&all, &(struct elf_source){ .path = shown, .fd = fd }, NULL, err);
	close(fd);
	for (size_t i = 0, n; i < all.len && rc == 0; i += n) {
		const struct elf_place *p = &all.place[i];
		for (n = 1; i + n < all.len && !p->provider == !p[n].provider && strcmp(p->name, p[n].name) == 0 &&
		     (!p->provider || strcmp(p->provider, p[n].provider) == 0); n++)
			continue;
		on_place(arg, &(struct record_place){ p->provider, p->name, p->args, n, p->counter != 0 });
	}
	elf_places_release(&all);
	return rc;
}
