/* Names of virtual machines in OpenStack, KubeVirt and Kata Containers. Their VMMs have generated names. */
#include "base/base.h"
#include "base/json_field.h"
#include "record/proc.h"
#include "record/vm_discovery.h"

#define SANDBOX_ID 64  /* hexadecimal digits of a sandbox's id */

/* Replaces the entities of XML in place. */
static void unescape_xml(char *s)
{
	static const struct { const char *entity; char c; } entities[] = {
		{ "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' }, { "&apos;", '\'' },
	};
	char *to = s;
	while (*s) {
		size_t i = 0;
		while (i < sizeof entities / sizeof *entities && strncmp(s, entities[i].entity, strlen(entities[i].entity)) != 0)
			i++;
		const bool is_entity = i < sizeof entities / sizeof *entities;
		*to++ = is_entity ? entities[i].c : *s;
		s += is_entity ? strlen(entities[i].entity) : 1;
	}
	*to = '\0';
}

char *vm_openstack_name(const char *root, const char *domain)
{
	static const char begin[] = "<nova:name>", end[] = "</nova:name>";
	char *xml = domain ? proc_text(root, NULL, "/run/libvirt/qemu/%s.xml", domain) : NULL, *name = NULL;
	char *from = xml ? strstr(xml, begin) : NULL, *to = from ? strstr(from, end) : NULL;
	if (to && to > from + strlen(begin)) {
		name = mem_printf("%.*s", (int)(to - from - (ptrdiff_t)strlen(begin)), from + strlen(begin));
		unescape_xml(name);
	}
	free(xml);
	return name;
}

char *vm_kubevirt_name(const char *root, int32_t pid, const char *guest)
{
	char *cgroup = proc_text(root, NULL, "/proc/%d/cgroup", pid), *name = NULL;
	const char *split = guest ? strchr(guest, '_') : NULL;  /* names in Kubernetes contain none */
	if (cgroup && strstr(cgroup, "kubepods") && split && split > guest && split[1] && !strchr(split + 1, '_'))
		name = mem_printf("%.*s/%s", (int)(split - guest), guest, split + 1);
	free(cgroup);
	return name;
}

/* Returns "NAMESPACE/POD" from a container's configuration; NULL: not there. */
static char *pod_of_config(const char *text, size_t len)
{
	static const char *const keys[][2] = {
		{ "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.sandbox-name" },  /* containerd */
		{ "io.kubernetes.pod.namespace", "io.kubernetes.pod.name" },                  /* CRI-O */
	};
	struct json_object *config = text ? json_parse(text, len) : NULL, *annotations = NULL;
	char *name = NULL;
	if (config && json_object_object_get_ex(config, "annotations", &annotations) &&
	    json_object_is_type(annotations, json_type_object)) {
		for (size_t i = 0; i < sizeof keys / sizeof *keys && !name; i++) {
			const char *space = json_member_text(annotations, keys[i][0]), *pod = json_member_text(annotations, keys[i][1]);
			name = *space && *pod ? mem_printf("%s/%s", space, pod) : NULL;
		}
	}
	json_object_put(config);
	return name;
}

char *vm_kata_name(const char *root, const char *id)
{
	static const char *const places[][2] = {
		{ "/run/containerd/io.containerd.runtime.v2.task/k8s.io", "config.json" },
		{ "/run/containers/storage/overlay-containers", "userdata/config.json" },
	};
	static const char sandbox[] = "sandbox-";
	char *name = NULL;
	if (id && strncmp(id, sandbox, strlen(sandbox)) == 0)
		id += strlen(sandbox);
	if (!id || strlen(id) != SANDBOX_ID || strspn(id, "0123456789abcdef") != SANDBOX_ID)
		return NULL;
	for (size_t i = 0; i < sizeof places / sizeof *places && !name; i++) {
		size_t len = 0;
		char *text = proc_text(root, &len, "%s/%s/%s", places[i][0], id, places[i][1]);
		name = pod_of_config(text, len);
		free(text);
	}
	return name;
}
