-- Who took most: threads, machines without a trace, interrupts.
-- host:text thief:text name:text kind:text victims:int taken_ns:duration
SELECT run.host AS host, COALESCE(taken.thief_machine, taken.kind) AS thief, taken.thief_name AS name, taken.kind AS kind,
       COUNT(DISTINCT taken.victim_machine) AS victims, SUM(taken.ns) AS taken_ns
FROM taken JOIN run ON run.run_id = taken.run_id
GROUP BY run.host, COALESCE(taken.thief_machine, taken.kind), taken.thief_name, taken.kind
ORDER BY taken_ns DESC, host, thief, name
