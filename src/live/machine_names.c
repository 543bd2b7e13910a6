/* Names of control groups by their inode numbers. Unknown numbers make a walk through the tree, once a period at most. */
#include "live/machine_names.h"

#include <dirent.h>
#include <sys/stat.h>

#include "live/live.h"
#include "live/machine.h"
#include "record/record.h"

#define MAX_GROUPS 65536
#define MAX_DEPTH 32

struct machine_names {
	const char *root;
	struct cgroup_tree tree;
	struct map by_id;          /* id -> index of name */
	char (*name)[LIVE_NAME];
	size_t len, cap;
	bool walked;               /* since machine_names_begin() */
};

struct machine_names *machine_names_new(const char *root)
{
	struct machine_names *n = mem_new(1, sizeof *n);
	n->root = root;
	cgroup_tree_find(&n->tree, root);
	return n;
}

void machine_names_free(struct machine_names *n)
{
	if (!n)
		return;
	map_release(&n->by_id);
	free(n->name);
	free(n);
}

void machine_names_begin(struct machine_names *n)
{
	n->walked = false;
	if (n->len < MAX_GROUPS)
		return;
	map_release(&n->by_id);
	n->by_id = (struct map)MAP_INIT;
	n->len = 0;
}

static const char *name_of_path(char name[LIVE_NAME], const char *root, const char *path)
{
	char *raw = control_group_name(root, path);
	text_escape(name, LIVE_NAME, raw && *raw ? raw : "/");
	free(raw);
	return name;
}

static void put_group(struct machine_names *n, uint64_t id, const char *path)
{
	bool is_new;
	uint64_t *at = map_put(&n->by_id, id, &is_new);
	if (!is_new)
		return;
	*at = n->len;
	name_of_path(*ARRAY_PUSH(n->name, n->len, n->cap), n->root, path);
}

static void walk(struct machine_names *n, const char *mount, const char *path, uint64_t flag, unsigned depth)
{
	char *dir = mem_printf("%s%s%s", n->root, mount, path);
	struct stat st;
	DIR *d = opendir(dir);
	if (d && stat(dir, &st) == 0)
		put_group(n, flag | st.st_ino, *path ? path : "/");
	for (const struct dirent *e; d && depth && n->len < MAX_GROUPS && (e = readdir(d));) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		char *below = mem_printf("%s/%s", path, e->d_name);
		walk(n, mount, below, flag, depth - 1);
		free(below);
	}
	if (d)
		closedir(d);
	free(dir);
}

const char *machine_names_of_group(struct machine_names *n, uint64_t id)
{
	const uint64_t *at = map_find(&n->by_id, id);
	if (!at && !n->walked && *n->tree.dir) {
		n->walked = true;
		if (!n->tree.is_v2)
			walk(n, n->tree.dir, "", 0, MAX_DEPTH);
		walk(n, n->tree.is_v2 ? n->tree.dir : "/sys/fs/cgroup/unified", "", MACHINE_V2, MAX_DEPTH);
		at = map_find(&n->by_id, id);
	}
	return at ? n->name[*at] : n->len ? "a group that ended" : "an unknown group";
}

const char *machine_names_of_process(struct machine_names *n, int32_t pid)
{
	static char name[LIVE_NAME];
	char *path = cgroup_tree_path(&n->tree, n->root, pid, pid);
	name_of_path(name, n->root, path ? path : "/");
	free(path);
	return name;
}

bool machine_names_has(const struct machine_names *n, const char *name)
{
	for (size_t i = 0; i < n->len; i++)
		if (strcmp(n->name[i], name) == 0)
			return true;
	return false;
}
