-- Who lost most: machines over all runs of their host.
-- host:text victim:text runs:int lost_ns:duration
SELECT run.host AS host, taken.victim_machine AS victim, COUNT(DISTINCT taken.run_id) AS runs, SUM(taken.ns) AS lost_ns
FROM taken JOIN run ON run.run_id = taken.run_id
GROUP BY run.host, taken.victim_machine
ORDER BY lost_ns DESC, host, victim
