-- Returns sums over the rows of run :run that start in intervals of the level :level, for intervals from :from to :to. Columns:
-- '', kind, device, stream, thread, start of the interval, number of rows, sum of their durations, longest duration, ordinal of
-- the longest row's name.
SELECT '', interval_row.kind, interval_row.device, interval_row.stream, interval_row.thread, interval_row.start_ns,
  interval_row.activity_rows, interval_row.busy_ns, interval_row.longest_ns, interval_row.name
FROM passes pass CROSS JOIN activity_intervals interval_row ON interval_row.pass_id = pass.id AND interval_row.level = :level
  AND interval_row.start_ns > :from - (1024 << 2 * :level) AND interval_row.start_ns < :to
WHERE pass.run_id = :run AND pass.ordinal = 1 AND pass.activity_kept = 1
