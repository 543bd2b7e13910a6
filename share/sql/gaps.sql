-- How long machines were kept from running: percentiles of their gaps.
-- host:text machine:text gaps:int total_ns:duration p50_ns:duration p90_ns:duration p99_ns:duration longest_ns:duration
-- The levels for ClickHouse, which counts ranks from 0, are 1e-12 below 0.5, 0.9 and 0.99: the nearest rank.
SELECT host, machine, COUNT(*) AS gaps, SUM(dur) AS total_ns,
       MIN(CASE WHEN place >= (n * 50 + 99) / 100 THEN dur END) AS p50_ns,
-- clickhouse: arrayElement(quantilesExact(0.499999999999, 0.899999999999, 0.989999999999)(dur), 1) AS p50_ns,
       MIN(CASE WHEN place >= (n * 90 + 99) / 100 THEN dur END) AS p90_ns,
-- clickhouse: arrayElement(quantilesExact(0.499999999999, 0.899999999999, 0.989999999999)(dur), 2) AS p90_ns,
       MIN(CASE WHEN place >= (n * 99 + 99) / 100 THEN dur END) AS p99_ns,
-- clickhouse: arrayElement(quantilesExact(0.499999999999, 0.899999999999, 0.989999999999)(dur), 3) AS p99_ns,
       MAX(dur) AS longest_ns
FROM (
    SELECT run.host AS host, gap.machine AS machine, gap.dur AS dur,
           ROW_NUMBER() OVER (PARTITION BY run.host, gap.machine ORDER BY gap.dur) AS place,
-- clickhouse: 0 AS place,
           COUNT(*) OVER (PARTITION BY run.host, gap.machine) AS n
-- clickhouse: 0 AS n
    FROM gap JOIN run ON run.run_id = gap.run_id
    WHERE gap.of_machine = 1
) AS placed
GROUP BY host, machine
ORDER BY p99_ns DESC, host, machine
