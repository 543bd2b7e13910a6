/* Interrupt handlers on the CPUs of all machines: what the innermost one of each CPU is called.
 *
 * An hrtimer expiry counts as "timer" when it is not inside another handler.  Names are made once per machine. */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "model/loss/initial_state.h"
#include "model/state/state.h"

static const char *const softirq_name[] = {
	"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
};

static void show(struct machine *mc, const struct cpu *c)
{
	const struct nest_frame *top = nest_top(&c->nest);
	sink_set(&mc->model->sink, c->attr_interrupt, top ? top->text : HISTORY_NULL);
}

static __attribute__((noinline)) int64_t make_name(struct machine *mc, const struct event *ev)
{
	char text[64];
	int64_t n = ev->irq.number;
	const char *name = ev->irq.name > 0 ? mc->names.get(mc->names.of, ev->irq.name) : "";
	if (ev->kind == EV_IRQ_ENTRY)
		snprintf(text, sizeof text, *name ? "irq/%" PRId64 "-%.32s" : "irq/%" PRId64, n, name);
	else if (n >= 0 && n < (int64_t)(sizeof softirq_name / sizeof *softirq_name))
		snprintf(text, sizeof text, "softirq/%" PRId64 "-%s", n, softirq_name[n]);
	else
		snprintf(text, sizeof text, "softirq/%" PRId64, n);
	return sink_id(&mc->model->sink, text);
}

static int64_t name_timer(struct machine *mc)
{
	if (mc->text_timer < 0)
		mc->text_timer = sink_id(&mc->model->sink, "timer");
	return mc->text_timer;
}

/* The id of the handler's name.  A name is made once for each that a trace has. */
static int64_t name_handler(struct machine *mc, const struct event *ev)
{
	if (ev->kind == EV_TIMER_ENTRY)
		return name_timer(mc);
	uint64_t number = (uint64_t)ev->irq.number, name = ev->irq.name < 0 ? 0 : (uint64_t)ev->irq.name;
	if (number >> 30 || name >> 32)  /* no interrupt's: the trace is damaged */
		return make_name(mc, ev);
	bool is_new;
	uint64_t *known = map_put(&mc->handler_name, number << 34 | name << 2 | (ev->kind == EV_IRQ_ENTRY), &is_new);
	if (is_new)
		*known = (uint64_t)make_name(mc, ev);
	return (int64_t)*known;
}

static void enter(struct machine *mc, struct cpu *c, const struct event *ev)
{
	const struct nest_frame *outer = nest_top(&c->nest);
	int64_t text = outer && ev->kind == EV_TIMER_ENTRY ? outer->text : name_handler(mc, ev);
	if (!outer && ev->kind != EV_SOFTIRQ_ENTRY)
		limits_look(c, mc->model->sink.now);
	if (ev->kind == EV_TIMER_ENTRY)
		limits_timer(mc, ev);
	mc->tells |= (uint8_t)handlers_kind(ev->kind);
	if (mc->endless & handlers_kind(ev->kind))
		return;
	struct nest_frame *f = nest_enter(&c->nest, ev);
	if (f)
		f->text = text;
	show(mc, c);
}

void irq_event(struct machine *mc, struct cpu *c, const struct event *ev)
{
	if (nest_entry_of[ev->kind] == ev->kind)
		enter(mc, c, ev);
	else if (nest_leave(&c->nest, ev))
		show(mc, c);
}

void irq_clear(struct machine *mc, struct cpu *c)
{
	if (!c->nest.depth)
		return;
	c->nest.depth = 0;
	show(mc, c);
}

void irq_foresee(struct machine *mc, const struct start *start)
{
	mc->tells |= (uint8_t)(start->asked & HANDLERS_ALL);
	for (unsigned kind = 0; kind < EVENT_KIND_COUNT; kind++)
		mc->tells |= (uint8_t)(start->handlers.entries[kind] ? handlers_kind(kind) : 0);
}

int64_t irq_context(struct machine *mc, const struct cpu *c, int64_t tid)
{
	const struct nest_frame *top = nest_top(&c->nest);
	const unsigned seen = mc->tells & ~(unsigned)mc->endless, within = HANDLERS_IRQ | HANDLERS_TIMER;
	if (top && top->entry == EV_SOFTIRQ_ENTRY && (seen & within) != within)
		return HISTORY_NULL;  /* a handler of another kind may have interrupted it */
	/* Whatever it interrupted; in a guest one goes on from there to the CPU that is in the handler of that name. */
	if (top && top->entry == EV_TIMER_ENTRY && !mc->parent)
		return name_timer(mc);
	if (top)
		return top->text;
	if (tid <= 0 || mc->tells != HANDLERS_ALL || mc->endless)  /* it may be in one of which the trace has nothing */
		return HISTORY_NULL;
	if (mc->model->text_thread < 0)
		mc->model->text_thread = sink_id(&mc->model->sink, "thread");
	return mc->model->text_thread;
}
