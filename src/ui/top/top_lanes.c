/* Lanes of the pCPUs: the last minute, one letter for each VM and task. */
#include "base/base.h"
#include "ui/top/top.h"

/* A VM has one letter, whichever of its vCPUs ran; a task has one by its name without the PID. */
const char *top_short_name(const struct live_culprit *c)
{
	const char *space = strncmp(c->name, "host/", 5) == 0 ? strchr(c->name, ' ') : NULL;
	return c->machine[0] ? c->machine : space ? space + 1 : c->name;
}

static char letter_at(size_t i)
{
	return (char)(i < 26 ? 'a' + i : 'A' + i - 26);
}

static size_t letter_index(char c)
{
	if (c >= 'a' && c <= 'z')
		return (size_t)(c - 'a');
	return c >= 'A' && c <= 'Z' ? (size_t)(c - 'A') + 26 : TOP_LETTERS;
}

/* Returns a name's letter. A new name gets the first of its own letters that is free, or any free one; '*': none. */
static char find_letter(struct top *t, const char *name)
{
	size_t at = TOP_LETTERS;
	for (size_t i = 0; i < TOP_LETTERS; i++)
		if (strcmp(t->letter_of[i], name) == 0)
			return letter_at(i);
	for (const char *c = name; *c && at == TOP_LETTERS; c++)
		if (letter_index(*c) < TOP_LETTERS && !t->letter_of[letter_index(*c)][0])
			at = letter_index(*c);
	for (size_t i = 0; i < TOP_LETTERS && at == TOP_LETTERS; i++)
		if (!t->letter_of[i][0])
			at = i;
	if (at == TOP_LETTERS)
		return '*';
	snprintf(t->letter_of[at], sizeof t->letter_of[at], "%s", name);
	return letter_at(at);
}

/* If all letters are in use, frees those of names that no kept sample contains. */
static void free_letters(struct top *t)
{
	bool used[TOP_LETTERS] = { false };
	for (size_t k = 0; k < TOP_LETTERS; k++)
		if (!t->letter_of[k][0])
			return;
	for (size_t back = 0; back < t->samples; back++) {
		const struct live_sample *s = &t->sample[(t->newest + TOP_SAMPLES - back) % TOP_SAMPLES];
		for (size_t i = 0; i < s->culprits; i++)
			for (size_t k = 0; k < TOP_LETTERS; k++)
				used[k] |= t->letter_of[k][0] && strcmp(t->letter_of[k], top_short_name(&s->culprit[i])) == 0;
	}
	for (size_t k = 0; k < TOP_LETTERS; k++)
		if (!used[k])
			t->letter_of[k][0] = '\0';
}

/* Returns the letter for a point in a sample: 0 is its begin, 1 its end. The tasks come in the order of their time. */
static char letter_in(struct top *t, const struct live_sample *s, unsigned cpu, double at)
{
	const struct live_cpu_use *u = &s->cpu[cpu];
	double sum = 0;
	for (int k = 0; k < 3 && u->top[k] >= 0; k++) {
		sum += (double)u->top_ns[k] / (double)s->period;
		if (at < sum)
			return find_letter(t, top_short_name(&s->culprit[u->top[k]]));
	}
	return at < (double)u->busy / (double)s->period ? '*' : '.';
}

/* A letter has an owner's colour, which it keeps while it belongs to its name. */
static struct style style_of_letter(const struct top *t, char letter, struct style style)
{
	return letter_index(letter) < TOP_LETTERS ? t->palette.owner[letter_index(letter) % OWNERS] : style;
}

void top_lane(struct top *t, unsigned cpu, struct screen *out, int x, int y, int w, struct style style)
{
	size_t back = 0;
	int64_t end = 0;  /* of sample `back`, before the end of the shown one, ns */
	if (cpu == 0)
		free_letters(t);
	for (int i = 0; i < w; i++) {
		const int64_t age = (2 * i + 1) * TOP_LANE_NS / (2 * w);
		const struct live_sample *s = top_before(t, back);
		while (s && end + s->period <= age) {
			end += s->period;
			s = top_before(t, ++back);
		}
		if (!s)
			break;
		const double at = 1 - (double)(age - end) / (double)s->period;
		const char letter = cpu < s->cpus ? letter_in(t, s, cpu, at) : ' ';
		screen_put(out, x + w - 1 - i, y, (uint32_t)letter, style_of_letter(t, letter, style));
	}
}

void top_legend(const struct top *t, char *buf, size_t size)
{
	size_t used = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < TOP_LETTERS && used < size; i++)
		if (t->letter_of[i][0])
			used += (size_t)snprintf(buf + used, size - used, "%s%c %.*s", used ? "  " : "", letter_at(i),
			                         (int)text_fit(t->letter_of[i], 24), t->letter_of[i]);
}
