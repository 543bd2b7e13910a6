-- VMs that were seen on more than one host, by their names.
-- machine:text host:text runs:int first_ts:date last_ts:date
SELECT machine.machine AS machine, run.host AS host, COUNT(*) AS runs, MIN(run.started) AS first_ts,
       MAX(run.started + run.span_ns - 1) AS last_ts
FROM machine JOIN run ON run.run_id = machine.run_id
WHERE machine.kind = 'vm' AND machine.machine IN (
    SELECT machine.machine
    FROM machine JOIN run ON run.run_id = machine.run_id
    WHERE machine.kind = 'vm'
    GROUP BY machine.machine
    HAVING COUNT(DISTINCT run.host) > 1
)
GROUP BY machine.machine, run.host
ORDER BY machine, first_ts, host
