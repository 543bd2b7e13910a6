-- Who lost most: machines over all runs of their host.
-- host:text victim:text runs:int lost_ns:duration
SELECT run.host AS host, steal_total.victim_machine AS victim, COUNT(DISTINCT steal_total.run_id) AS runs, SUM(steal_total.ns) AS lost_ns
FROM steal_total JOIN run ON run.run_id = steal_total.run_id
GROUP BY run.host, steal_total.victim_machine
ORDER BY lost_ns DESC, host, victim
