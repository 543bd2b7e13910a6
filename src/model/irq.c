/* Interrupt handlers on the CPUs of all machines: irq over softirq over thread, a stack per CPU.
 *
 * The attribute names the innermost handler.  An hrtimer expiry counts as "timer" when it is not inside another
 * handler.  An exit without its entry (lost events) closes what it can and nothing else. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/state.h"

static const char *const softirq_name[] = {
	"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
};

static void show(struct machine *mc, const struct cpu *c)
{
	if (!c->irqs)
		sink_set(&mc->model->sink, c->attr_interrupt, HISTORY_NULL);
	else if (c->irqs <= IRQ_DEPTH)
		sink_text(&mc->model->sink, c->attr_interrupt, c->irq[c->irqs - 1].text);
}

static void name_handler(struct machine *mc, const struct cpu *c, const struct event *ev, char *text, size_t size)
{
	int64_t n = ev->irq.number;
	const char *name = ev->irq.name > 0 ? mc->names.get(mc->names.of, ev->irq.name) : "";
	if (ev->kind == EV_TIMER_ENTRY && c->irqs)
		memcpy(text, c->irq[c->irqs - 1].text, size);  /* the handler that it interrupts or is part of */
	else if (ev->kind == EV_TIMER_ENTRY)
		snprintf(text, size, "timer");
	else if (ev->kind == EV_IRQ_ENTRY)
		snprintf(text, size, *name ? "irq/%" PRId64 "-%.32s" : "irq/%" PRId64, n, name);
	else if (n >= 0 && n < (int64_t)(sizeof softirq_name / sizeof *softirq_name))
		snprintf(text, size, "softirq/%" PRId64 "-%s", n, softirq_name[n]);
	else
		snprintf(text, size, "softirq/%" PRId64, n);
}

static void enter(struct machine *mc, struct cpu *c, const struct event *ev, uint16_t exit_kind)
{
	if (!c->irq)
		c->irq = mem_new(IRQ_DEPTH, sizeof *c->irq);
	if (c->irqs < IRQ_DEPTH) {
		struct irq_frame *f = &c->irq[c->irqs];
		f->exit_kind = exit_kind;
		f->number = ev->arg[0];
		name_handler(mc, c, ev, f->text, sizeof f->text);
	}
	if (c->irqs < UINT32_MAX)
		c->irqs++;
	show(mc, c);
}

static void leave(struct machine *mc, struct cpu *c, const struct event *ev)
{
	if (c->irqs > IRQ_DEPTH) {
		c->irqs--;
		return;
	}
	for (uint32_t i = c->irqs; i-- > 0; ) {
		if (c->irq[i].exit_kind != ev->kind || c->irq[i].number != ev->arg[0])
			continue;
		c->irqs = i;
		show(mc, c);
		return;
	}
}

void irq_event(struct machine *mc, struct cpu *c, const struct event *ev)
{
	switch (ev->kind) {
	case EV_IRQ_ENTRY:
		enter(mc, c, ev, EV_IRQ_EXIT);
		break;
	case EV_SOFTIRQ_ENTRY:
		enter(mc, c, ev, EV_SOFTIRQ_EXIT);
		break;
	case EV_TIMER_ENTRY:
		enter(mc, c, ev, EV_TIMER_EXIT);
		break;
	default:
		leave(mc, c, ev);
	}
}

void irq_clear(struct machine *mc, struct cpu *c)
{
	if (!c->irqs)
		return;
	c->irqs = 0;
	show(mc, c);
}
