-- Noisy neighbours: what a machine lost to another, as a share of all.
-- host:text victim:text thief:text lost_ns:duration share:share
SELECT pair.host AS host, pair.victim AS victim, pair.thief AS thief, pair.lost_ns AS lost_ns,
       1.0 * pair.lost_ns / whole.all_ns AS share
FROM (
    SELECT run.host AS host, COALESCE(run.host, '') AS place, taken.victim_machine AS victim,
           COALESCE(taken.thief_machine, taken.kind) AS thief, SUM(taken.ns) AS lost_ns
    FROM taken JOIN run ON run.run_id = taken.run_id
    GROUP BY run.host, taken.victim_machine, COALESCE(taken.thief_machine, taken.kind)
) AS pair JOIN (
    SELECT COALESCE(run.host, '') AS place, taken.victim_machine AS victim, SUM(taken.ns) AS all_ns
    FROM taken JOIN run ON run.run_id = taken.run_id
    GROUP BY COALESCE(run.host, ''), taken.victim_machine
) AS whole ON whole.place = pair.place AND whole.victim = pair.victim
WHERE pair.victim <> pair.thief
ORDER BY lost_ns DESC, host, victim, thief
