-- Noisy neighbours: what a machine lost to another one, and the share of all that it lost.
-- host:text victim:text thief:text lost_ns:duration share:share
SELECT pair.host AS host, pair.victim AS victim, pair.thief AS thief, pair.lost_ns AS lost_ns,
       1.0 * pair.lost_ns / whole.all_ns AS share
FROM (
    SELECT run.host AS host, COALESCE(run.host, '') AS place, steal.victim_machine AS victim,
           COALESCE(steal.thief_machine, steal.kind) AS thief, SUM(steal.ns) AS lost_ns
    FROM steal JOIN run ON run.run_id = steal.run_id
    WHERE steal.of_machine = 1
    GROUP BY run.host, steal.victim_machine, COALESCE(steal.thief_machine, steal.kind)
) AS pair JOIN (
    SELECT COALESCE(run.host, '') AS place, steal.victim_machine AS victim, SUM(steal.ns) AS all_ns
    FROM steal JOIN run ON run.run_id = steal.run_id
    WHERE steal.of_machine = 1
    GROUP BY COALESCE(run.host, ''), steal.victim_machine
) AS whole ON whole.place = pair.place AND whole.victim = pair.victim
WHERE pair.victim <> pair.thief
ORDER BY lost_ns DESC, host, victim, thief
