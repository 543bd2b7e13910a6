-- Who took most: threads, machines without a trace, interrupts.
-- host:text culprit:text name:text kind:text victims:int stolen_ns:duration
SELECT run.host AS host, COALESCE(steal_total.culprit_machine, steal_total.kind) AS culprit, steal_total.culprit_name AS name, steal_total.kind AS kind,
       COUNT(DISTINCT steal_total.victim_machine) AS victims, SUM(steal_total.ns) AS stolen_ns
FROM steal_total JOIN run ON run.run_id = steal_total.run_id
GROUP BY run.host, COALESCE(steal_total.culprit_machine, steal_total.kind), steal_total.culprit_name, steal_total.kind
ORDER BY stolen_ns DESC, host, culprit, name
