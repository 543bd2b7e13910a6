-- Noisy neighbours: what a machine lost to another one, and the share of all that it lost.
-- host:text victim:text thief:text lost_ns:duration share:share
WITH pair AS (
    SELECT run.host AS host, steal.victim_machine AS victim, COALESCE(steal.thief_machine, steal.kind) AS thief,
           SUM(steal.ns) AS lost_ns
    FROM steal JOIN run ON run.run_id = steal.run_id
    WHERE steal.of_machine = 1
    GROUP BY run.host, steal.victim_machine, COALESCE(steal.thief_machine, steal.kind)
), shared AS (
    SELECT host, victim, thief, lost_ns, 1.0 * lost_ns / SUM(lost_ns) OVER (PARTITION BY host, victim) AS share FROM pair
)
SELECT host, victim, thief, lost_ns, share
FROM shared
WHERE victim <> thief
ORDER BY lost_ns DESC, host, victim, thief
