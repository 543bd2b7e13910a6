-- What machines lost day by day: ns in each second that was recorded.
-- host:text machine:text day_ts:date runs:int recorded_ns:duration lost_ns:duration lost_ns_per_s:duration
SELECT host, machine, day_ts, runs, recorded_ns, lost_ns,
       lost_ns / NULLIF(recorded_ns / 1000000, 0) * 1000 +
-- clickhouse: if(recorded_ns < 1000000, NULL, intDiv(lost_ns, greatest(intDiv(recorded_ns, 1000000), 1)) * 1000 +
       lost_ns % NULLIF(recorded_ns / 1000000, 0) * 1000 / NULLIF(recorded_ns / 1000000, 0) AS lost_ns_per_s
-- clickhouse: intDiv(lost_ns % greatest(intDiv(recorded_ns, 1000000), 1) * 1000, greatest(intDiv(recorded_ns, 1000000), 1))) AS lost_ns_per_s
FROM (
    SELECT host, machine, day_ts, CAST(SUM(runs) AS bigint) AS runs, CAST(SUM(recorded_ns) AS bigint) AS recorded_ns,
           CAST(SUM(lost_ns) AS bigint) AS lost_ns
    FROM (
        SELECT run.host AS host, machine.machine AS machine, run.started - run.started % 86400000000000 AS day_ts,
               1 AS runs, run.span_ns AS recorded_ns, 0 AS lost_ns
        FROM machine JOIN run ON run.run_id = machine.run_id
        WHERE machine.kind <> 'vm' OR machine.parent IS NOT NULL  -- of others nobody knows what their host took
        UNION ALL
        SELECT run.host AS host, steal_total.victim_machine AS machine, run.started - run.started % 86400000000000 AS day_ts,
               0 AS runs, 0 AS recorded_ns, steal_total.ns AS lost_ns
        FROM steal_total JOIN run ON run.run_id = steal_total.run_id
    ) AS piece
    GROUP BY host, machine, day_ts
) AS day
ORDER BY host, machine, day_ts
