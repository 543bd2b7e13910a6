/* Names of control groups for people: systemd units, containers and pods. The runtimes keep the names of containers in
 * files, which any privileged process may write: names are limited in length and escaped where they are printed. */
#include "base/base.h"
#include "base/json_field.h"
#include "record/control_group.h"
#include "record/proc.h"

#define ID_MIN 12      /* shortest id of a container, hex digits */
#define ID_SHOWN 12
#define NAME_SHOWN 200

/* Counts the hex digits at the start. */
static size_t hex_digits(const char *text)
{
	return strspn(text, "0123456789abcdef");
}

/* Reads a json file; id replaces the '*' in its name. Returns NULL if there is no such file. */
static struct json_object *read_json(const char *root, const char *file, const char *id)
{
	size_t size;
	const char *star = strchr(file, '*');
	char *begin = mem_printf("%.*s", (int)(star - file), file);
	char *text = proc_text(root, &size, "%s%s%s", begin, id, star + 1);
	struct json_object *o = text ? json_parse(text, size) : NULL;
	free(begin);
	free(text);
	return o;
}

/* Returns "NAMESPACE/POD/CONTAINER" if all three are given; NULL otherwise. */
static char *pod_name(const char *space, const char *pod, const char *container)
{
	if (!*space || !*pod)
		return NULL;
	return mem_printf("%.63s/%.100s/%.63s", space, pod, *container ? container : "sandbox");
}

/* The names in annotations or labels: by containerd, by CRI-O, and by kubelet's shim for Docker. */
static char *name_of_annotations(struct json_object *o)
{
	static const char *const key[][3] = {
		{ "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.sandbox-name", "io.kubernetes.cri.container-name" },
		{ "io.kubernetes.pod.namespace", "io.kubernetes.pod.name", "io.kubernetes.container.name" },
	};
	char *name = NULL;
	for (size_t i = 0; i < sizeof key / sizeof *key && o && !name; i++)
		name = pod_name(json_member_text(o, key[i][0]), json_member_text(o, key[i][1]), json_member_text(o, key[i][2]));
	return name;
}

static struct json_object *member_object(struct json_object *o, const char *key)
{
	struct json_object *member = NULL;
	return o && json_object_object_get_ex(o, key, &member) && json_object_is_type(member, json_type_object) ? member : NULL;
}

/* Files with a container's description, '*' stands for its id. */
static char *name_by_oci_config(const char *root, const char *id)
{
	static const char *const file[] = {
		"/run/containerd/io.containerd.runtime.v2.task/k8s.io/*/config.json",
		"/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/*/config.json",
		"/run/containers/storage/overlay-containers/*/userdata/config.json",
		"/var/lib/containers/storage/overlay-containers/*/userdata/config.json",
	};
	char *name = NULL;
	for (size_t i = 0; i < sizeof file / sizeof *file && !name; i++) {
		struct json_object *o = read_json(root, file[i], id), *notes = member_object(o, "annotations");
		name = name_of_annotations(notes);
		if (!name && notes && *json_member_text(notes, "io.podman.annotations.container-name"))
			name = mem_printf("%.*s", NAME_SHOWN, json_member_text(notes, "io.podman.annotations.container-name"));
		json_object_put(o);
	}
	return name;
}

static char *name_by_docker(const char *root, const char *id)
{
	struct json_object *o = read_json(root, "/var/lib/docker/containers/*/config.v2.json", id);
	char *name = name_of_annotations(member_object(member_object(o, "Config"), "Labels"));
	const char *text = o ? json_member_text(o, "Name") : "";
	text += *text == '/';
	if (!name && *text)
		name = mem_printf("%.*s", NAME_SHOWN, text);
	json_object_put(o);
	return name;
}

/* podman lists its containers in one file: [{"id": ..., "names": ["web"]}, ...]. */
static char *name_by_podman(const char *root, const char *id)
{
	size_t size;
	char *text = proc_text(root, &size, "/var/lib/containers/storage/overlay-containers/containers.json"), *name = NULL;
	struct json_object *list = text ? json_tokener_parse(text) : NULL;
	const size_t n = list && json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
	for (size_t i = 0; i < n && !name; i++) {
		struct json_object *o = json_object_array_get_idx(list, i);
		if (!json_object_is_type(o, json_type_object) || strcmp(json_member_text(o, "id"), id) != 0)
			continue;
		struct json_object *names = json_member_array(o, "names");
		if (names && json_object_array_length(names))
			name = mem_printf("%.*s", NAME_SHOWN, json_object_get_string(json_object_array_get_idx(names, 0)));
	}
	json_object_put(list);
	free(text);
	return name;
}

/* A container's directory in the path is "PREFIX-ID.scope" with systemd, otherwise "ID" below the runtime's directory. */
static const struct { const char *prefix, *shown; } runtimes[] = {
	{ "docker-", "docker" }, { "cri-containerd-", "containerd" }, { "crio-", "crio" }, { "libpod-", "podman" },
	{ "nerdctl-", "nerdctl" },
};

/* Returns the name of the container with an id of `length` digits; runtime: for a container without a name. */
static char *container_name(const char *root, const char *id, size_t length, const char *runtime)
{
	char *whole = mem_printf("%.*s", (int)length, id), *name = name_by_docker(root, whole);
	if (!name)
		name = name_by_oci_config(root, whole);
	if (!name)
		name = name_by_podman(root, whole);
	if (!name)
		name = mem_printf("%s/%.*s", runtime, ID_SHOWN, whole);
	free(whole);
	return name;
}

/* Returns a container's name if this component of a path (`length` bytes) is one; NULL otherwise. parent: the
 * component before it. */
static char *component_container(const char *root, const char *at, size_t length, const char *parent, size_t parent_length)
{
	for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
		const size_t prefix = strlen(runtimes[i].prefix), digits = length > prefix ? hex_digits(at + prefix) : 0;
		if (length > prefix && strncmp(at, runtimes[i].prefix, prefix) == 0 && digits >= ID_MIN &&
		    (prefix + digits == length || strncmp(at + prefix + digits, ".scope", 6) == 0))
			return container_name(root, at + prefix, digits, runtimes[i].shown);
	}
	size_t colon = length;  /* "PODUID.slice:cri-containerd:ID": the drivers of kubelet and containerd differ */
	while (colon && at[colon - 1] != ':')
		colon--;
	at += colon;
	length -= colon;
	if (length < 32 || hex_digits(at) < length)
		return NULL;
	char *above = mem_printf("%.*s", (int)parent_length, parent);
	const bool in_pod = strncmp(above, "pod", 3) == 0 || strstr(above, "-pod");
	const char *runtime = colon ? "containerd" : in_pod ? "kubepods" : *above ? above : "container";
	char *name = container_name(root, at, length, runtime);
	free(above);
	return name;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
	const size_t n = strlen(end);
	return length > n && strncmp(text + length - n, end, n) == 0;
}

/* Replaces \x2d in a systemd name by the character. */
static char *unescape_unit(const char *text, size_t length)
{
	char *out = mem_new(length + 1, 1), *to = out;
	for (size_t i = 0; i < length; i++) {
		unsigned code;
		if (i + 3 < length && text[i] == '\\' && text[i + 1] == 'x' && sscanf(text + i + 2, "%2x", &code) == 1 && code) {
			*to++ = (char)code;
			i += 3;
		} else {
			*to++ = text[i];
		}
	}
	return out;
}

/* Returns the name of a machine's group; NULL: no container of LXC or systemd-nspawn. */
static char *component_machine(const char *at, size_t length)
{
	if (length > 13 && strncmp(at, "lxc.payload.", 12) == 0)
		return mem_printf("%.*s", (int)(length - 12), at + 12);
	if (length > 14 && strncmp(at, "machine-", 8) == 0 && ends_with(at, length, ".scope"))
		return unescape_unit(at + 8, length - 14);
	return NULL;
}

static bool is_unit(const char *at, size_t length)
{
	static const char *const kinds[] = { ".service", ".scope", ".socket", ".mount", ".swap", ".slice" };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (ends_with(at, length, kinds[i]))
			return true;
	return false;
}

/* Appends the rest of the path below the named component. */
static char *name_with_rest(char *name, const char *rest)
{
	char *whole = *rest ? mem_printf("%s%s", name, rest) : NULL;
	if (!whole)
		return name;
	free(name);
	return whole;
}

char *control_group_name(const char *root, const char *path)
{
	const char *before = "", *unit = NULL;
	size_t before_length = 0, unit_length = 0;
	for (const char *at = path + strspn(path, "/"); *at; at += strspn(at, "/")) {
		const size_t length = strcspn(at, "/");
		char *name = component_container(root, at, length, before, before_length);
		if (!name)
			name = component_machine(at, length);
		if (name)
			return name_with_rest(name, at + length);
		if (is_unit(at, length)) {
			unit = at;
			unit_length = length;
		}
		before = at;
		before_length = length;
		at += length;
	}
	if (unit)
		return name_with_rest(mem_printf("%.*s", (int)unit_length, unit), unit + unit_length);
	const char *plain = path + strspn(path, "/");
	return mem_dup(*plain ? plain : "/");
}
