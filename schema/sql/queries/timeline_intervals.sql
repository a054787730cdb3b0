-- :run :level :from :to. The sums of the rows of a run that start in intervals of a level, from :from to :to. Columns: '', kind,
-- device, stream, thread, start of the interval, rows, sum of their durations, longest duration, ordinal of the longest row's name.
SELECT '', i.kind, i.device, i.stream, i.thread, i.start_ns, i.activity_rows, i.busy_ns, i.longest_ns, i.name
FROM passes p CROSS JOIN activity_intervals i ON i.pass_id = p.id AND i.level = :level
  AND i.start_ns > :from - (1024 << 2 * :level) AND i.start_ns < :to
WHERE p.run_id = :run AND p.ordinal = 1 AND p.activity_kept = 1
