/* Interrupt handlers of all machines: writes the name of each CPU's innermost handler.
 *
 * An hrtimer expiry appears as "timer" only outside other handlers. Names are created once per machine. */
#include "base/base.h"
#include "model/loss/initial_state.h"
#include "model/state/state.h"

static const char *const softirq_name[] = {
	"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
};

static void write_innermost(struct machine *mc, const struct cpu *c)
{
	const struct irq_frame *top = irq_nest_top(&c->nest);
	sink_set(&mc->model->sink, c->attr_interrupt, top ? top->text : HISTORY_NULL);
}

static __attribute__((noinline)) int64_t create_handler_name(struct machine *mc, const struct event *ev)
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

static int64_t timer_name_id(struct machine *mc)
{
	if (mc->text_timer < 0)
		mc->text_timer = sink_id(&mc->model->sink, "timer");
	return mc->text_timer;
}

/* Returns the string id of the handler's name. */
static int64_t handler_name_id(struct machine *mc, const struct event *ev)
{
	if (ev->kind == EV_TIMER_ENTRY)
		return timer_name_id(mc);
	uint64_t number = (uint64_t)ev->irq.number, name = ev->irq.name < 0 ? 0 : (uint64_t)ev->irq.name;
	if (number >> 30 || name >> 32)  /* not a valid interrupt number: damaged trace */
		return create_handler_name(mc, ev);
	bool is_new;
	uint64_t *known = map_put(&mc->handler_name, number << 34 | name << 2 | (ev->kind == EV_IRQ_ENTRY), &is_new);
	if (is_new)
		*known = (uint64_t)create_handler_name(mc, ev);
	return (int64_t)*known;
}

static void enter_handler(struct machine *mc, struct cpu *c, const struct event *ev)
{
	const struct irq_frame *outer = irq_nest_top(&c->nest);
	int64_t text = outer && ev->kind == EV_TIMER_ENTRY ? outer->text : handler_name_id(mc, ev);
	if (!outer && ev->kind != EV_SOFTIRQ_ENTRY)
		throttling_interrupt(c, mc->model->sink.now);
	if (ev->kind == EV_TIMER_ENTRY)
		throttling_timer(mc, ev);
	mc->handler_kinds |= (uint8_t)handlers_kind(ev->kind);
	if (mc->kinds_without_exit & handlers_kind(ev->kind))
		return;
	struct irq_frame *f = irq_nest_push(&c->nest, ev);
	if (f)
		f->text = text;
	write_innermost(mc, c);
}

void irq_event(struct machine *mc, struct cpu *c, const struct event *ev)
{
	if (irq_entry_kind[ev->kind] == ev->kind)
		enter_handler(mc, c, ev);
	else if (irq_nest_pop(&c->nest, ev))
		write_innermost(mc, c);
}

void irq_clear(struct machine *mc, struct cpu *c)
{
	if (!c->nest.depth)
		return;
	c->nest.depth = 0;
	write_innermost(mc, c);
}

void irq_set_recorded_kinds(struct machine *mc, const struct prescan *prescan)
{
	mc->handler_kinds |= (uint8_t)(prescan->asked & HANDLERS_ALL);
	for (unsigned kind = 0; kind < EVENT_KIND_COUNT; kind++)
		mc->handler_kinds |= (uint8_t)(prescan->handlers.entries[kind] ? handlers_kind(kind) : 0);
}

int64_t irq_context(struct machine *mc, const struct cpu *c, int64_t tid)
{
	const struct irq_frame *top = irq_nest_top(&c->nest);
	const unsigned seen = mc->handler_kinds & ~(unsigned)mc->kinds_without_exit, within = HANDLERS_IRQ | HANDLERS_TIMER;
	if (top && top->entry == EV_SOFTIRQ_ENTRY && (seen & within) != within)
		return HISTORY_NULL;  /* a handler of an unrecorded kind may have interrupted the softirq */
	/* The timer handler itself is the context, not the handler that it interrupted. In a guest the outer handler is more
	 * useful: its name leads to the CPU that is in that handler. */
	if (top && top->entry == EV_TIMER_ENTRY && !mc->parent)
		return timer_name_id(mc);
	if (top)
		return top->text;
	/* the thread may be interrupted by an unrecorded handler */
	if (tid <= 0 || (!mc->has_run_states && (mc->handler_kinds != HANDLERS_ALL || mc->kinds_without_exit)))
		return HISTORY_NULL;
	if (mc->model->text_thread < 0)
		mc->model->text_thread = sink_id(&mc->model->sink, "thread");
	return mc->model->text_thread;
}
