-- Noisy neighbours: what a machine lost to another, as a share of all.
-- host:text victim:text culprit:text lost_ns:duration share:share
SELECT pair.host AS host, pair.victim AS victim, pair.culprit AS culprit, pair.lost_ns AS lost_ns,
       1.0 * pair.lost_ns / whole.all_ns AS share
FROM (
    SELECT run.host AS host, COALESCE(run.host, '') AS place, steal_total.victim_machine AS victim,
           COALESCE(steal_total.culprit_machine, steal_total.kind) AS culprit, SUM(steal_total.ns) AS lost_ns
    FROM steal_total JOIN run ON run.run_id = steal_total.run_id
    GROUP BY run.host, steal_total.victim_machine, COALESCE(steal_total.culprit_machine, steal_total.kind)
) AS pair JOIN (
    SELECT COALESCE(run.host, '') AS place, steal_total.victim_machine AS victim, SUM(steal_total.ns) AS all_ns
    FROM steal_total JOIN run ON run.run_id = steal_total.run_id
    GROUP BY COALESCE(run.host, ''), steal_total.victim_machine
) AS whole ON whole.place = pair.place AND whole.victim = pair.victim
WHERE pair.victim <> pair.culprit
ORDER BY lost_ns DESC, host, victim, culprit
