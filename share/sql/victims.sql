-- Who lost most: machines over all runs of their host.
-- host:text victim:text runs:int lost_ns:duration
SELECT run.host AS host, steal.victim_machine AS victim, COUNT(DISTINCT steal.run_id) AS runs, SUM(steal.ns) AS lost_ns
FROM steal JOIN run ON run.run_id = steal.run_id
WHERE steal.of_machine = 1
GROUP BY run.host, steal.victim_machine
ORDER BY lost_ns DESC, host, victim
