/* Order of the attributes in the file: breadth first, children by name.
 *
 * Children are sorted in memory in runs of limited size; several runs are merged pairwise in paged tables. O(n log n)
 * for a node's children; nearly all comparisons need only the first eight bytes of the names. */
#include "base/base.h"
#include "history/builder.h"

#define RUN_SHARE 64  /* memory for a run: 1/RUN_SHARE of the memory limit */

struct named_child {
	uint64_t head;           /* first eight bytes of the name, big-endian: compares like the name */
	uint32_t name, child, leaf;
};

/* Sorts a node's children. */
struct children {
	struct tree *tree;
	struct named_child *run;
	size_t run_size, len;    /* entries that fit into the run; entries in it */
	struct paged sorted[2];  /* tables of struct named_child: [0] the sorted runs; merges alternate between both */
	size_t n_sorted;         /* number of children in old[0] */
};

static uint64_t name_head(struct tree *t, uint32_t name)
{
	uint8_t text[8];
	uint64_t head = 0;
	tree_text(t, name, (char *)text, sizeof text);
	for (size_t i = 0; i < sizeof text; i++)
		head = head << 8 | text[i];
	return head;
}

static int compare_names(const void *a, const void *b, void *tree)
{
	const struct named_child *x = a, *y = b;
	if (x->head != y->head)
		return x->head < y->head ? -1 : 1;
	return x->head & 0xff ? tree_compare(tree, x->name + 8, y->name + 8) : 0;
}

static void sort_run(struct children *k)
{
	qsort_r(k->run, k->len, sizeof *k->run, compare_names, k->tree);
}

static void store_run(struct children *k)
{
	sort_run(k);
	PAGED_GROW(&k->sorted[0], struct named_child, k->n_sorted + k->len);
	PAGED_GROW(&k->sorted[1], struct named_child, k->n_sorted + k->len);
	for (size_t i = 0; i < k->len; i++, k->n_sorted++)
		*PAGED_EDIT(&k->sorted[0], struct named_child, k->n_sorted) = k->run[i];
	k->len = 0;
}

static struct named_child stored_child(struct children *k, unsigned which, size_t i)
{
	return *PAGED_READ(&k->sorted[which], struct named_child, i);
}

/* Merges the neighbouring runs [a, b) and [b, end) of table `from` into the other table. */
static void merge_two(struct children *k, unsigned from, size_t a, size_t b, size_t end)
{
	const size_t middle = b;
	struct named_child x = { 0 }, y = { 0 };
	bool has_x = false, has_y = false;
	for (size_t to = a; to < end; to++) {
		if (!has_x && a < middle)
			x = stored_child(k, from, a);
		if (!has_y && b < end)
			y = stored_child(k, from, b);
		has_x = a < middle;
		has_y = b < end;
		const bool first = has_x && (!has_y || compare_names(&x, &y, k->tree) < 0);
		*PAGED_EDIT(&k->sorted[!from], struct named_child, to) = first ? x : y;
		if (first)
			a++, has_x = false;
		else
			b++, has_y = false;
	}
}

/* Merges all runs. Returns the index of the table with the result. */
static unsigned merge_all(struct children *k)
{
	unsigned from = 0;
	for (size_t width = k->run_size; width < k->n_sorted; width *= 2, from = !from)
		for (size_t at = 0; at < k->n_sorted; at += 2 * width) {
			const size_t middle = at + width < k->n_sorted ? at + width : k->n_sorted;
			merge_two(k, from, at, middle, at + 2 * width < k->n_sorted ? at + 2 * width : k->n_sorted);
		}
	return from;
}

static void gather_children(struct children *k, uint32_t first)
{
	k->len = k->n_sorted = 0;
	struct node n;
	for (uint32_t id = first; id != NONE; id = n.sibling) {
		n = tree_node(k->tree, id);
		if (k->len == k->run_size)
			store_run(k);
		k->run[k->len++] = (struct named_child){ name_head(k->tree, n.name), n.name, n.child, n.leaf };
	}
	if (k->n_sorted)
		store_run(k);
	else
		sort_run(k);
}

void builder_number(struct history_builder *b, struct paged *ordered)
{
	struct children k = { .tree = &b->tree, .run_size = b->memory / RUN_SHARE / sizeof(struct named_child) };
	size_t len = 1;
	k.run = mem_new(k.run_size, sizeof *k.run);
	paged_init(&k.sorted[0], &b->pager);
	paged_init(&k.sorted[1], &b->pager);
	PAGED_GROW(ordered, struct ordered_attr, b->tree.nodes);
	const struct node root = tree_node(&b->tree, 0);
	*PAGED_EDIT(ordered, struct ordered_attr, 0) = (struct ordered_attr){ NONE, root.name, root.child, 0, root.leaf };
	for (uint32_t attr = 0; attr < len && !b->failed; attr++) {
		gather_children(&k, PAGED_READ(ordered, struct ordered_attr, attr)->child);  /* here `child` is still the id of a
		                                                                              * node of the tree */
		const size_t children = k.n_sorted + k.len;
		const unsigned from = merge_all(&k);
		struct ordered_attr *p = PAGED_EDIT(ordered, struct ordered_attr, attr);
		p->child = children ? (uint32_t)len : 0;
		p->children = (uint32_t)children;
		for (size_t i = 0; i < children && len < b->tree.nodes; i++, len++) {
			const struct named_child c = k.n_sorted ? stored_child(&k, from, i) : k.run[i];
			*PAGED_EDIT(ordered, struct ordered_attr, len) = (struct ordered_attr){ attr, c.name, c.child, 0, c.leaf };
		}
	}
	free(k.run);
	paged_release(&k.sorted[0]);
	paged_release(&k.sorted[1]);
	paged_release(&b->tree.node);
}
