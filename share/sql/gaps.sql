-- How long machines were kept from running: percentiles (nearest rank) of the gaps of each, over all runs of its host.
-- host:text machine:text gaps:int total_ns:duration p50_ns:duration p90_ns:duration p99_ns:duration longest_ns:duration
WITH placed AS (
    SELECT run.host AS host, gap.machine AS machine, gap.dur AS dur,
           ROW_NUMBER() OVER (PARTITION BY run.host, gap.machine ORDER BY gap.dur) AS place,
           COUNT(*) OVER (PARTITION BY run.host, gap.machine) AS gaps
    FROM gap JOIN run ON run.run_id = gap.run_id
    WHERE gap.of_machine = 1
)
SELECT host, machine, gaps, SUM(dur) AS total_ns,
       MIN(CASE WHEN place >= (gaps * 50 + 99) / 100 THEN dur END) AS p50_ns,
       MIN(CASE WHEN place >= (gaps * 90 + 99) / 100 THEN dur END) AS p90_ns,
       MIN(CASE WHEN place >= (gaps * 99 + 99) / 100 THEN dur END) AS p99_ns,
       MAX(dur) AS longest_ns
FROM placed
GROUP BY host, machine, gaps
ORDER BY p99_ns DESC, host, machine
