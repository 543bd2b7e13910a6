-- Who took most: threads, machines without a trace of their own, interrupts, over all runs of their host.
-- host:text thief:text name:text kind:text victims:int taken_ns:duration
SELECT run.host AS host, COALESCE(steal.thief_machine, steal.kind) AS thief, steal.thief_name AS name, steal.kind AS kind,
       COUNT(DISTINCT steal.victim_machine) AS victims, SUM(steal.ns) AS taken_ns
FROM steal JOIN run ON run.run_id = steal.run_id
WHERE steal.of_machine = 1
GROUP BY run.host, COALESCE(steal.thief_machine, steal.kind), steal.thief_name, steal.kind
ORDER BY taken_ns DESC, host, thief, name
