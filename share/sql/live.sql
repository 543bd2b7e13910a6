-- Who takes from whom, by day, over all hosts: the rows of monitor.
-- host:text day_ts:date victim:text culprit:text kind:text lost_ns:duration
SELECT host, day_ts, victim, culprit, kind, CAST(SUM(ns) AS bigint) AS lost_ns
FROM (
    SELECT live_steal.host AS host, live_steal.ts - live_steal.ts % 86400000000000 AS day_ts,
           live_steal.victim_machine AS victim, live_steal.culprit AS culprit, live_steal.culprit_kind AS kind,
           live_steal.ns AS ns
    FROM live_steal
) AS piece
GROUP BY host, day_ts, victim, culprit, kind
ORDER BY lost_ns DESC, host, day_ts, victim, culprit
