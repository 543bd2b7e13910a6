-- Runs whose clocks, losses or damage make answers unreliable.
-- host:text run_id:int started_ts:date clock_quality:text band_ns:duration lost_events:int warnings:int
SELECT host, run_id, started AS started_ts, clock_quality, band_ns, lost_events, warnings
FROM run
WHERE warnings > 0 OR lost_events > 0 OR clock_quality <> 'ACCURATE' OR (clock_quality IS NOT NULL AND band_ns IS NULL)
ORDER BY lost_events DESC, warnings DESC, started, run_id
