/* The order of the attributes in the file: breadth first, children by name.
 *
 * Children are sorted in memory as far as they fit a run; more runs are merged, two by two, in pages.  O(n log n) for the
 * children of a node, nearly all of it comparisons of the first eight bytes of names. */
#include <stdlib.h>

#include "base/mem.h"
#include "history/builder.h"

#define RUN_SHARE 64  /* one part in so many of the memory */

struct kin {
	uint64_t head;        /* the first bytes of the name, so that they compare as names do */
	uint32_t name, child, leaf;
};

/* The children of a node. */
struct kindred {
	struct tree *tree;
	struct kin *run;
	size_t room, len;     /* of the run */
	struct paged old[2];  /* of struct kin: the runs before, and what they are merged into */
	size_t olds;          /* children in old[0] */
};

static uint64_t head_of(struct tree *t, uint32_t name)
{
	uint8_t text[8];
	uint64_t head = 0;
	tree_text(t, name, (char *)text, sizeof text);
	for (size_t i = 0; i < sizeof text; i++)
		head = head << 8 | text[i];
	return head;
}

static int compare(const void *a, const void *b, void *tree)
{
	const struct kin *x = a, *y = b;
	if (x->head != y->head)
		return x->head < y->head ? -1 : 1;
	return x->head & 0xff ? tree_compare(tree, x->name + 8, y->name + 8) : 0;
}

static void sort_run(struct kindred *k)
{
	qsort_r(k->run, k->len, sizeof *k->run, compare, k->tree);
}

static void put_away(struct kindred *k)
{
	sort_run(k);
	PAGED_ROOM(&k->old[0], struct kin, k->olds + k->len);
	PAGED_ROOM(&k->old[1], struct kin, k->olds + k->len);
	for (size_t i = 0; i < k->len; i++, k->olds++)
		*PAGED_EDIT(&k->old[0], struct kin, k->olds) = k->run[i];
	k->len = 0;
}

static struct kin old_kin(struct kindred *k, unsigned which, size_t i)
{
	return *PAGED_READ(&k->old[which], struct kin, i);
}

/* Two neighbouring runs, [a, b) and [b, end), into one. */
static void merge_two(struct kindred *k, unsigned from, size_t a, size_t b, size_t end)
{
	const size_t middle = b;
	struct kin x = { 0 }, y = { 0 };
	bool has_x = false, has_y = false;
	for (size_t to = a; to < end; to++) {
		if (!has_x && a < middle)
			x = old_kin(k, from, a);
		if (!has_y && b < end)
			y = old_kin(k, from, b);
		has_x = a < middle;
		has_y = b < end;
		const bool first = has_x && (!has_y || compare(&x, &y, k->tree) < 0);
		*PAGED_EDIT(&k->old[!from], struct kin, to) = first ? x : y;
		if (first)
			a++, has_x = false;
		else
			b++, has_y = false;
	}
}

/* All runs into one: in which table it is. */
static unsigned merge_all(struct kindred *k)
{
	unsigned from = 0;
	for (size_t width = k->room; width < k->olds; width *= 2, from = !from)
		for (size_t at = 0; at < k->olds; at += 2 * width) {
			const size_t middle = at + width < k->olds ? at + width : k->olds;
			merge_two(k, from, at, middle, at + 2 * width < k->olds ? at + 2 * width : k->olds);
		}
	return from;
}

static void gather(struct kindred *k, uint32_t first)
{
	k->len = k->olds = 0;
	struct node n;
	for (uint32_t id = first; id != NONE; id = n.sibling) {
		n = tree_node(k->tree, id);
		if (k->len == k->room)
			put_away(k);
		k->run[k->len++] = (struct kin){ head_of(k->tree, n.name), n.name, n.child, n.leaf };
	}
	if (k->olds)
		put_away(k);
	else
		sort_run(k);
}

void builder_number(struct history_builder *b, struct paged *placed)
{
	struct kindred k = { .tree = &b->tree, .room = b->memory / RUN_SHARE / sizeof(struct kin) };
	size_t len = 1;
	k.run = mem_new(k.room, sizeof *k.run);
	paged_init(&k.old[0], &b->pager);
	paged_init(&k.old[1], &b->pager);
	PAGED_ROOM(placed, struct placed, b->tree.nodes);
	const struct node root = tree_node(&b->tree, 0);
	*PAGED_EDIT(placed, struct placed, 0) = (struct placed){ NONE, root.name, root.child, 0, root.leaf };
	for (uint32_t attr = 0; attr < len && !b->failed; attr++) {
		gather(&k, PAGED_READ(placed, struct placed, attr)->child);  /* while it waits, that is a node */
		const size_t children = k.olds + k.len;
		const unsigned from = merge_all(&k);
		struct placed *p = PAGED_EDIT(placed, struct placed, attr);
		p->child = children ? (uint32_t)len : 0;
		p->children = (uint32_t)children;
		for (size_t i = 0; i < children && len < b->tree.nodes; i++, len++) {
			const struct kin c = k.olds ? old_kin(&k, from, i) : k.run[i];
			*PAGED_EDIT(placed, struct placed, len) = (struct placed){ attr, c.name, c.child, 0, c.leaf };
		}
	}
	free(k.run);
	paged_release(&k.old[0]);
	paged_release(&k.old[1]);
	paged_release(&b->tree.node);
}
