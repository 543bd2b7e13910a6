/* record/: what a session keeps of control groups. */
#include "test.h"

#include <stdlib.h>

#include "record/facts.h"
#include "record_tree.h"

#define LINE(text) text, sizeof(text)

static struct record_tree tree;

static char *groups_text(struct facts *const *before, struct facts *const *after, size_t n)
{
	struct yaml_out *o = yaml_out_new();
	facts_put_weights(o, YAML_OUT_ROOT, before, after, n);
	for (size_t i = 0; i < n; i++)
		facts_put_groups(o, yaml_out_map(o, YAML_OUT_ROOT, i ? "b" : "a"), before[i], after[i]);
	return yaml_out_end(o);
}

/* The groups of vCPUs' threads, each with its weight once, as the scheduler counts; nothing of a thread whose groups' weights
 * were changed meanwhile, or are not known to be the same. */
static void test_groups(void **state)
{
	(void)state;
	tree_begin(&tree);
	size_t n, hidden;
	tree_vm(&tree, 300, LINE("qemu\0-name\0web"), 2);
	tree_vm(&tree, 400, LINE("qemu\0-name\0db"), 2);
	tree_text(&tree, "proc/300/task/310/cgroup", "0::/vms/web/vcpu0\n");
	tree_text(&tree, "proc/300/task/311/cgroup", "0::/vms/web/vcpu1\n");
	tree_text(&tree, "proc/400/task/410/cgroup", "0::/vms/db\n");
	tree_text(&tree, "proc/400/task/411/cgroup", "0::/idle\n");
	tree_text(&tree, "sys/fs/cgroup/vms/cpu.weight", "100\n");
	tree_text(&tree, "sys/fs/cgroup/vms/web/cpu.weight", "39\n");
	tree_text(&tree, "sys/fs/cgroup/vms/db/cpu.weight", "10000\n");
	tree_text(&tree, "sys/fs/cgroup/vms/web/vcpu1/cpu.weight", "1\n");
	tree_text(&tree, "sys/fs/cgroup/idle/cpu.weight", "0\n");
	struct vm *vm = vms_find(tree.root, &n, &hidden);
	assert_int_equal(n, 2);
	struct facts *before[2], *after[2];
	for (int i = 0; i < 2; i++)
		before[i] = facts_take(tree.root, &vm[i]);
	for (int i = 0; i < 2; i++)
		after[i] = facts_take(tree.root, &vm[i]);
	char *text = groups_text(before, after, 2);
	assert_string_equal(text, "weights:\n  /vms/web: 399\n  /vms: 1024\n  /vms/web/vcpu1: 10\n  /vms/db: 102400\n  /idle: 3\n"
	                          "a:\n  groups:\n    310: /vms/web/vcpu0\n    311: /vms/web/vcpu1\n"
	                          "b:\n  groups:\n    410: /vms/db\n    411: /idle\n");
	free(text);
	tree_text(&tree, "sys/fs/cgroup/vms/web/cpu.weight", "40\n");
	tree_text(&tree, "proc/400/task/411/cgroup", "0::/vms\n");
	facts_free(after[0]);
	facts_free(after[1]);
	for (int i = 0; i < 2; i++)
		after[i] = facts_take(tree.root, &vm[i]);
	text = groups_text(before, after, 2);
	assert_string_equal(text, "weights:\n  /vms/db: 102400\n  /vms: 1024\na: {}\nb:\n  groups:\n    410: /vms/db\n");
	free(text);
	text = groups_text(before, (struct facts *[]){ NULL, NULL }, 2);
	assert_string_equal(text, "a: {}\nb: {}\n");
	free(text);
	for (int i = 0; i < 2; i++) {
		facts_free(before[i]);
		facts_free(after[i]);
	}
	vms_free(vm, n);
	tree_end(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_groups) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
