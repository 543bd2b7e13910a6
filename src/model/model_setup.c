/* Creates and frees a model. */
#include "base/base.h"
#include "model/state/feed.h"

static const char *no_name(const void *of, int64_t id)
{
	(void)of, (void)id;
	return "";
}

static void declare_sets(struct model *m)
{
	static const char *const request[] = { "running", "yielded", "unknown", "dropped" };
	const char *owner[HISTORY_STATES];
	memcpy(owner, pcpu_owner_name, sizeof pcpu_owner_name);
	m->owners = m->machines - 1;
	if (m->owners > HISTORY_STATES - 1 - PCPU_VM)
		m->owners = HISTORY_STATES - 1 - PCPU_VM;
	for (uint32_t i = 0; i < m->owners; i++)
		owner[PCPU_VM + i] = m->machine[1 + i]->name;
	m->set_vcpu = sink_state_set(&m->sink, "vcpu", vcpu_state_name, VCPU_STATE_COUNT);
	m->set_thread = sink_state_set(&m->sink, "thread", thread_state_name, THREAD_STATE_COUNT);
	m->set_owner = sink_state_set(&m->sink, "owner", owner, PCPU_VM + m->owners);
	m->set_request = sink_state_set(&m->sink, "request", request, 4);
	m->set_out_by = sink_state_set(&m->sink, "out by", out_reason_name, OUT_REASON_COUNT);
	m->set_polling = sink_state_set(&m->sink, "polling", poll_outcome_name, POLL_OUTCOME_COUNT);
}

static struct machine *machine_new(struct model *m, uint32_t index, const struct machine_setup *setup)
{
	struct machine *mc = mem_new(1, sizeof *mc);
	char root[1000];
	mc->model = m;
	mc->index = index;
	mc->name = mem_dup(index ? setup->name : "host");
	if (index)
		history_path(root, sizeof root, SCHEMA_VMS, mc->name, (char *)NULL);
	else
		history_path(root, sizeof root, SCHEMA_HOST, (char *)NULL);
	mc->root = mem_printf("/%s", root + (*root == '/'));
	mc->parent = setup->parent >= 0 && m->machine[setup->parent]->traced ? m->machine[setup->parent] : NULL;
	mc->text_name = sink_id(&m->sink, mc->name);
	mc->is_virtual = setup->is_virtual;
	mc->text_vm_id = setup->vm_id && *setup->vm_id ? sink_id(&m->sink, setup->vm_id) : -1;
	mc->text_timer = -1;
	mc->host_pid = setup->host_pid;
	mc->traced = setup->traced;
	mc->has_entries = setup->has_entries;
	mc->has_run_states = setup->has_run_states;
	mc->has_throttled = setup->has_throttled;
	mc->one_cpu = setup->one_cpu && setup->vcpus <= 1;
	mc->kinds_without_exit = (uint8_t)setup->kinds_without_exit;
	mc->names = setup->names.get ? setup->names : (struct name_source){ no_name, NULL };
	return mc;
}

struct model *model_new(const struct machine_setup *setup, size_t n, bool paper_states,
                        const struct model_sink_ops *ops, void *to, struct error *err)
{
	static const struct sync_vcpu_lifetime always = { INT64_MIN, INT64_MAX };
	struct model *m = mem_new(1, sizeof *m);
	m->sink = (struct model_sink){ .ops = ops, .to = to, .now = INT64_MIN };
	m->paper_states = paper_states;
	m->text_thread = -1;
	m->machine = mem_new(n, sizeof *m->machine);
	for (size_t i = 0; i < n; i++)
		m->machine[m->machines++] = machine_new(m, (uint32_t)i, &setup[i]);
	declare_sets(m);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < setup[i].vcpus; k++) {
			const struct sync_vcpu *v = &setup[i].vcpu[k];
			if (v->number <= UINT16_MAX)
				vcpu_map(m->machine[i], v->number, v->host_tid, setup[i].life ? &setup[i].life[k] : &always);
		}
	if (!m->sink.failed)
		return m;
	if (err)
		*err = m->sink.err;
	model_free(m);
	return NULL;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->machines; i++) {
		struct machine *mc = m->machine[i];
		thread_free_all(mc);
		request_release(mc);
		request_probes_release(mc);
		map_release(&mc->candidate);
		map_release(&mc->handler_name);
		map_release(&mc->exit_name);
		free(mc->timer_expiries);
		for (uint32_t k = 0; k < mc->cpus; k++) {
			irq_nest_release(&mc->cpu[k].nest);
			free(mc->cpu[k].run_levels);
		}
		free(mc->cpu);
		free(mc->counters);
		free(mc->name);
		free(mc->root);
		free(mc);
	}
	map_release(&m->groups);
	map_release(&m->group_of);
	map_release(&m->throttled);
	group_quota_release(m);
	control_groups_release(&m->seen_groups);
	free(m->machine);
	free(m->vcpu);
	free(m->candidate);
	free(m);
}
