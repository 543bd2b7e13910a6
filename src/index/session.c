/* Reads session files: converts YAML to struct input. */
#include "index/session.h"

#include <unistd.h>

#include "base/base.h"
#include "base/yaml_file.h"
#include "index/input.h"
#include "model/model.h"

#define REMEDY "see stealscope-session(5)"
#define GROUPS_MAX 4096
#define SHARES_MAX 262144  /* maximum that the kernel allows */
#define GROUP_DEPTH_MAX 32          /* maximum depth of control groups that a replay considers */

bool is_session_file_name(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

char *find_session_file(const char *dir)
{
	if (trace_is_live(dir))
		return NULL;
	const size_t len = strlen(dir);
	char *path = mem_printf("%s%ssession.yaml", dir, len && dir[len - 1] == '/' ? "" : "/");
	if (access(path, F_OK) == 0)
		return path;
	free(path);
	return NULL;
}

struct session {
	struct input *in;
	struct yaml_file file;
	bool was_found;  /* the user named its directory: damaged guests are skipped if other machines are listed */
	bool confined;  /* the same for all its machines: it names only what lies below its directory */
	bool is_file;  /* the user wrote the file, so error messages contain the line */
	char *dir;  /* the session file's directory, with a slash at its end; "": working directory */
	struct { const char *path; unsigned shares; } *group;  /* control groups of the host with their shares; `file` owns
	                                                        * the paths */
	size_t groups, group_cap;
	struct error *err;
};

/* Fails on an unknown member, so that a misspelt name is not ignored silently. */
static int check_members(struct session *s, const yaml_node_t *map, const char *const *known)
{
	yaml_node_t *key, *value;
	if (map->type != YAML_MAPPING_NODE)
		return yaml_refuse(&s->file, map, s->err, "expected a mapping (name: value)");
	for (size_t i = 0; yaml_pair(&s->file, map, i, &key, &value); i++) {
		const char *name = yaml_scalar(key);
		struct suggestion near = SUGGESTION(name ? name : "");
		size_t k = 0;
		while (known[k] && strcmp(known[k], near.typed) != 0)
			suggest(&near, known[k++]);
		if (!known[k])
			return yaml_refuse_word(&s->file, key, "unknown key", &near, s->err);
	}
	return 0;
}

/* Reads an optional member's text; NULL: absent. Returns 0 or -1. */
static int get_text(struct session *s, const yaml_node_t *map, const char *key, const char **text)
{
	const yaml_node_t *node = yaml_member(&s->file, map, key);
	*text = yaml_scalar(node);
	return node && !*text ? yaml_refuse(&s->file, node, s->err, "%s: expected a text", key) : 0;
}

static int get_offset(struct session *s, const yaml_node_t *map, struct sync_hint *hint)
{
	const yaml_node_t *node = yaml_member(&s->file, map, "offset");
	const char *text;
	if (get_text(s, map, "offset", &text))
		return -1;
	hint->has_offset = text != NULL;
	if (text && !time_parse_offset(text, &hint->offset))
		return yaml_refuse(&s->file, node, s->err, "offset: not a duration: '%s'", text);
	return 0;
}

static int get_manual_offset(struct session *s, const yaml_node_t *map, struct sync_hint *hint)
{
	const yaml_node_t *node = yaml_member(&s->file, map, "nudge");
	const char *text;
	if (get_text(s, map, "nudge", &text))
		return -1;
	if (text && !time_parse_offset(*text == '+' ? text + 1 : text, &hint->manual_offset))
		return yaml_refuse(&s->file, node, s->err, "nudge: not a duration: '%s'", text);
	if (hint->manual_offset > SYNC_MANUAL_OFFSET_MAX || hint->manual_offset < -SYNC_MANUAL_OFFSET_MAX)
		return yaml_refuse(&s->file, node, s->err, "nudge: more than an hour: '%s'", text);
	return 0;
}

/* Parses tsc: { offset: -35946410527, ratio: 1, bits: 0 }. */
static int get_tsc(struct session *s, const yaml_node_t *map, struct sync_hint *hint)
{
	static const char *const known[] = { "offset", "ratio", "bits", NULL };
	yaml_node_t *node = yaml_member(&s->file, map, "tsc"), *member[3];
	int64_t ratio, bits;
	if (!node)
		return 0;
	if (check_members(s, node, known))
		return -1;
	for (size_t i = 0; i < 3; i++)
		if (!(member[i] = yaml_member(&s->file, node, known[i])))
			return yaml_refuse(&s->file, node, s->err, "tsc: %s is missing", known[i]);
	if (yaml_integer(&s->file, member[0], INT64_MIN, INT64_MAX, &hint->tsc_offset, s->err) ||
	    yaml_integer(&s->file, member[1], 1, INT64_MAX, &ratio, s->err) ||
	    yaml_integer(&s->file, member[2], 0, 63, &bits, s->err))
		return -1;
	hint->has_tsc = true;
	hint->tsc_ratio = (uint64_t)ratio;
	hint->tsc_bits = (unsigned)bits;
	return 0;
}

static int get_parent(struct session *s, const yaml_node_t *map, struct sync_hint *hint)
{
	const char *text;
	if (get_text(s, map, "parent", &text))
		return -1;
	hint->parent = text ? mem_dup(text) : NULL;
	return 0;
}

/* Parses vcpus: { 0: 154, 1: 155 }: CPU number of the guest -> TID of the thread that runs it on the outer machine. */
static int get_vcpus(struct session *s, const yaml_node_t *map, struct sync_hint *hint)
{
	yaml_node_t *node = yaml_member(&s->file, map, "vcpus"), *key, *value;
	size_t cap = 0;
	if (node && node->type != YAML_MAPPING_NODE)
		return yaml_refuse(&s->file, node, s->err, "vcpus: expected {CPU: TID}");
	for (size_t i = 0; yaml_pair(&s->file, node, i, &key, &value); i++) {
		int64_t number, tid;
		if (yaml_integer(&s->file, key, 0, 4095, &number, s->err) ||
		    yaml_integer(&s->file, value, 1, INT32_MAX, &tid, s->err))
			return -1;
		*ARRAY_PUSH(hint->vcpu, hint->vcpus, cap) = (struct sync_hint_vcpu){ (unsigned)number, (int32_t)tid };
	}
	return 0;
}

/* Parses weights: { /machine.slice: 1024, ... }: control group of the host -> shares. */
static int get_weights(struct session *s, const yaml_node_t *map)
{
	yaml_node_t *node = yaml_member(&s->file, map, "weights"), *key, *value;
	if (node && node->type != YAML_MAPPING_NODE)
		return yaml_refuse(&s->file, node, s->err, "weights: expected {GROUP: SHARES}");
	for (size_t i = 0; yaml_pair(&s->file, node, i, &key, &value); i++) {
		const char *path = yaml_scalar(key);
		int64_t shares;
		if (!path || *path != '/')
			return yaml_refuse(&s->file, key, s->err, "weights: expected a control group such as /machine.slice");
		if (i >= GROUPS_MAX)
			return yaml_refuse(&s->file, key, s->err, "weights: more than %d control groups", GROUPS_MAX);
		if (yaml_integer(&s->file, value, 1, SHARES_MAX, &shares, s->err))
			return -1;
		ARRAY_PUSH(s->group, s->groups, s->group_cap)->path = path;
		s->group[s->groups - 1].shares = (unsigned)shares;
	}
	return 0;
}

/* Returns the groups with weights on the path to a group, outermost first, as index:shares, for example "0:1024/3:200";
 * NULL: none. The caller frees it. */
static char *weighted_path(const struct session *s, const char *path)
{
	char *weights = NULL;
	for (const char *end = path; *end; ) {
		end += 1 + strcspn(end + 1, "/");
		const size_t length = (size_t)(end - path);
		for (size_t i = 0; i < s->groups; i++) {
			if (strncmp(s->group[i].path, path, length) != 0 || s->group[i].path[length])
				continue;
			char *longer = mem_printf("%s%s%zu:%u", weights ? weights : "", weights ? "/" : "", i, s->group[i].shares);
			free(weights);
			weights = longer;
			break;
		}
	}
	return weights;
}

static int group_depth(const char *path)
{
	int depth = 0;
	for (; *path; path++)
		depth += *path == '/' && depth <= GROUP_DEPTH_MAX;
	return depth;
}

/* Parses groups: { 154: /machine.slice/web.scope }: TID of a host thread -> its control group. parent: the machine that
 * runs the guest; NULL: the host. */
static int get_groups(struct session *s, const yaml_node_t *map, const char *parent)
{
	yaml_node_t *node = yaml_member(&s->file, map, "groups"), *key, *value;
	if (node && node->type != YAML_MAPPING_NODE)
		return yaml_refuse(&s->file, node, s->err, "groups: expected {TID: GROUP}");
	if (node && parent && strcmp(parent, "host") != 0)
		return yaml_refuse(&s->file, node, s->err, "groups: only for guests that run on the host itself");
	for (size_t i = 0; yaml_pair(&s->file, node, i, &key, &value); i++) {
		const char *path = yaml_scalar(value);
		int64_t tid;
		if (yaml_integer(&s->file, key, 1, INT32_MAX, &tid, s->err))
			return -1;
		if (!path || *path != '/' || group_depth(path) > GROUP_DEPTH_MAX)
			return yaml_refuse(&s->file, value, s->err, "groups: expected a control group such as /machine.slice");
		const char *synthetic = strstr(path, "/sched_idle:");  /* the recorder's group for one SCHED_IDLE thread */
		char *real = mem_printf("%.*s", synthetic ? (int)(synthetic - path) : (int)strlen(path), path);
		control_groups_add_member(&s->in->control_groups, (int32_t)tid, *real ? real : "/");
		free(real);
		char *weights = weighted_path(s, path);
		if (weights)
			*ARRAY_PUSH(s->in->group, s->in->groups, s->in->group_cap) = (struct model_groups){ (int32_t)tid, weights };
	}
	return 0;
}

/* Returns true if the path is the directory of the session file or lies below it; also if it does not exist. */
static bool is_below(const struct session *s, const char *path)
{
	char *file = mem_printf("%.*s", (int)trace_path_length(path), path), *real = realpath(file, NULL);
	char *dir = realpath(*s->dir ? s->dir : ".", NULL);
	const size_t n = dir ? strlen(dir) : 0;
	const bool below = !real || (dir && strncmp(real, dir, n) == 0 && (n == 1 || real[n] == '/' || !real[n]));
	free(file);
	free(real);
	free(dir);
	return below;
}

/* Whoever made the recording wrote its session file: it must not choose what is opened elsewhere. */
static int check_place(struct session *s, const yaml_node_t *at, const char *place, struct error *err)
{
	if (trace_is_live(place) && (s->confined || !s->is_file))
		return yaml_refuse(&s->file, at, err, "%s: live traces are read only if you name them, or the session file "
		                   "itself", place);
	if (s->confined && !trace_is_live(place) && !is_below(s, place))
		return yaml_refuse(&s->file, at, err, "%s is not below the directory of the session file; name the session file "
		                   "itself to read it", place);
	return 0;
}

static int add_traces(struct session *s, const yaml_node_t *map, const char *name, enum trace_role role)
{
	const char *dir, *layout;
	if (get_text(s, map, "dir", &dir) || get_text(s, map, "layout", &layout))
		return -1;
	if (!dir)
		return yaml_refuse(&s->file, map, s->err, "dir: is missing");
	char *place = *dir == '/' || trace_is_live(dir) ? mem_dup(dir) : mem_printf("%s%s", s->dir, dir);
	int rc = check_place(s, map, place, s->err);
	if (rc == 0 && layout && strchr(layout, '/'))
		rc = check_place(s, map, layout, s->err);
	if (rc) {
		free(place);
		return -1;
	}
	rc = role == ROLE_GUEST && s->was_found
		? input_add_listed_guest(s->in, place, name, layout, s->err)
		: input_add_machine(s->in, place, name, role, layout, s->err);
	free(place);
	if (rc && s->is_file && s->err->status == STATUS_INPUT)
		error_wrap(s->err, "%s:%zu", s->file.name, map->start_mark.line + 1);
	return rc;
}

/* Parses throttled: events: the trace contains an event for each throttled thread. */
static int get_throttled(struct session *s, const yaml_node_t *map, bool *has_events)
{
	const char *text;
	if (get_text(s, map, "throttled", &text))
		return -1;
	if (text && strcmp(text, "events") != 0)
		return yaml_refuse(&s->file, yaml_member(&s->file, map, "throttled"), s->err, "throttled: expected events");
	*has_events |= text != NULL;
	return 0;
}

static int load_host(struct session *s, const yaml_node_t *node)
{
	static const char *const known[] = { "dir", "name", "layout", "weights", "groups", "control_groups", "throttled",
		"topology", "facts", NULL };
	const char *name;
	if (!node)
		return 0;
	if (s->in->control_groups.is_guest)
		control_groups_release(&s->in->control_groups);
	if (check_members(s, node, known) || get_text(s, node, "name", &name) || get_weights(s, node) ||
	    control_groups_read(&s->in->control_groups, &s->file, yaml_member(&s->file, node, "control_groups"), s->err) ||
	    get_throttled(s, node, &s->in->control_groups.has_events) || get_groups(s, node, NULL) ||
	    topology_read(&s->in->topology, &s->file, yaml_member(&s->file, node, "topology"), s->err))
		return -1;
	return add_traces(s, node, name, ROLE_HOST);
}

/* Reads the control groups of a guest, which are used if the session has no others. */
static int get_guest_groups(struct session *s, const yaml_node_t *node)
{
	struct control_groups g = { .is_guest = true };
	struct control_groups *used = s->in->control_groups.groups ? &g : &s->in->control_groups;
	int rc = control_groups_read(&g, &s->file, yaml_member(&s->file, node, "control_groups"), s->err);
	if (rc == 0)
		rc = get_throttled(s, node, &g.has_events);
	if (rc == 0 && g.groups && used != &g)
		*used = g;
	else
		control_groups_release(&g);
	return rc;
}

static int load_guest(struct session *s, const yaml_node_t *node)
{
	static const char *const known[] = { "dir", "name", "layout", "parent", "offset", "nudge", "vcpus", "tsc", "groups",
		"control_groups", "throttled", "memory", "facts", NULL };
	const char *name;
	if (check_members(s, node, known) || get_text(s, node, "name", &name))
		return -1;
	if (!name)
		return yaml_refuse(&s->file, node, s->err, "name: is missing");
	if (strlen(name) > MACHINE_NAME_MAX)
		return yaml_refuse(&s->file, node, s->err, "name: longer than %d bytes", MACHINE_NAME_MAX);
	struct sync_hint *hint = input_add_hint(s->in, name);
	if (get_parent(s, node, hint) || get_offset(s, node, hint) || get_manual_offset(s, node, hint) ||
	    get_vcpus(s, node, hint) || get_tsc(s, node, hint) || get_groups(s, node, hint->parent) ||
	    get_guest_groups(s, node) ||
	    topology_read_memory(&s->in->topology, &s->file, yaml_member(&s->file, node, "memory"), name, s->err))
		return -1;
	/* A guest without a trace may be listed only for its vCPU threads. */
	if (!yaml_member(&s->file, node, "dir") && hint->vcpus)
		return 0;
	return add_traces(s, node, name, ROLE_GUEST);
}

/* Counts the machines with traces in the session. */
static size_t count_machines(struct session *s, yaml_node_t *root)
{
	yaml_node_t *guest, *guests = yaml_member(&s->file, root, "guests");
	size_t n = yaml_member(&s->file, root, "host") != NULL;
	for (size_t i = 0; yaml_item(&s->file, guests, i, &guest); i++)
		n += yaml_member(&s->file, guest, "dir") != NULL;
	return n;
}

static int refuse_without_traces(struct session *s, yaml_node_t *root)
{
	if (!s->in->notes.len)
		return yaml_refuse(&s->file, root, s->err, "the session names no traces");
	return error_repeat(s->err, STATUS_INPUT, "copy the traces again", "none of the traces can be read: %s",
	                    s->in->notes.item[s->in->notes.len - 1].text);
}

/* Parses domains: { 1: web, 2: db }: id of a domain of Xen -> name. */
static int load_domains(struct session *s, const yaml_node_t *node)
{
	yaml_node_t *key, *value;
	if (node && node->type != YAML_MAPPING_NODE)
		return yaml_refuse(&s->file, node, s->err, "domains: expected {ID: NAME}");
	for (size_t i = 0; yaml_pair(&s->file, node, i, &key, &value); i++) {
		int64_t id;
		const char *name = yaml_scalar(value);
		if (yaml_integer(&s->file, key, 0, DOMAIN_ID_MAX, &id, s->err))
			return -1;
		if (!name || !*name || strlen(name) > MACHINE_NAME_MAX)
			return yaml_refuse(&s->file, value, s->err, "domains: expected a name of at most %d bytes", MACHINE_NAME_MAX);
		input_name_domain(s->in, (uint32_t)id, name);
	}
	return 0;
}

static int load_document(struct session *s)
{
	static const char *const known[] = { "host", "guests", "sync", "tsc_hz", "domains", NULL };
	yaml_node_t *root = yaml_root(&s->file), *guest, *hz;
	const char *sync;
	if (!root)
		return yaml_refuse(&s->file, NULL, s->err, "the file is empty");
	if (check_members(s, root, known) || get_text(s, root, "sync", &sync))
		return -1;
	if (sync && !s->in->sync)
		s->in->sync = mem_dup(sync);
	hz = yaml_member(&s->file, root, "tsc_hz");
	if (hz && !s->in->sync_options.tsc_hz &&
	    yaml_integer(&s->file, hz, TSC_HZ_MIN, TSC_HZ_MAX, &s->in->sync_options.tsc_hz, s->err))
		return -1;
	s->was_found &= count_machines(s, root) > 1;
	if (load_domains(s, yaml_member(&s->file, root, "domains")) || load_host(s, yaml_member(&s->file, root, "host")))
		return -1;
	const yaml_node_t *guests = yaml_member(&s->file, root, "guests");
	if (guests && guests->type != YAML_SEQUENCE_NODE)
		return yaml_refuse(&s->file, guests, s->err, "guests: expected a list (- name: ...)");
	for (size_t i = 0; yaml_item(&s->file, guests, i, &guest); i++)
		if (load_guest(s, guest))
			return -1;
	return s->in->specs ? 0 : refuse_without_traces(s, root);
}

/* Loads the parsed file. Directories in the file are relative to the file's directory. */
static int load_file(struct session *s, const char *path)
{
	const char *slash = strrchr(path, '/');
	s->dir = mem_printf("%.*s", slash ? (int)(slash - path + 1) : 0, path);
	int rc = load_document(s);
	free(s->dir);
	free(s->group);
	yaml_file_release(&s->file);
	return rc;
}

int session_load(struct input *in, const char *path, bool was_found, struct error *err)
{
	struct session s = { .in = in, .was_found = was_found, .confined = was_found, .is_file = true, .err = err };
	return yaml_file_read(&s.file, path, REMEDY, err) ? -1 : load_file(&s, path);
}

int session_parse(struct input *in, const char *text, size_t size, const char *path, struct error *err)
{
	struct session s = { .in = in, .err = err };
	return yaml_file_parse(&s.file, text, size, path, REMEDY, err) ? -1 : load_file(&s, path);
}
