-- What machines lost day by day, before and after a change: ns in each second that was recorded.
-- host:text machine:text day_ts:date runs:int recorded_ns:duration lost_ns:duration lost_ns_per_s:duration
WITH lost AS (
    SELECT run_id, victim_machine, SUM(ns) AS ns FROM steal WHERE of_machine = 1 GROUP BY run_id, victim_machine
), day AS (
    SELECT run.host AS host, machine.machine AS machine, run.started - run.started % 86400000000000 AS day_ts,
           COUNT(*) AS runs, CAST(SUM(run.span_ns) AS bigint) AS recorded_ns,
           CAST(SUM(COALESCE(lost.ns, 0)) AS bigint) AS lost_ns
    FROM run JOIN machine ON machine.run_id = run.run_id
         LEFT JOIN lost ON lost.run_id = run.run_id AND lost.victim_machine = machine.machine
    GROUP BY run.host, machine.machine, run.started - run.started % 86400000000000
)
SELECT host, machine, day_ts, runs, recorded_ns, lost_ns,
       lost_ns * 1000 / NULLIF(recorded_ns / 1000000, 0) AS lost_ns_per_s
FROM day
ORDER BY host, machine, day_ts
