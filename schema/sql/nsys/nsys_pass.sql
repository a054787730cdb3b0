-- :run. Makes nsys's ids of processes and threads: process * 2^24 + thread.
INSERT INTO temp.exported_pass
SELECT p.id, p.job_id, p.run_id,
  (SELECT iif(count(DISTINCT d.process) = 1, max(d.process) << 24, NULL) FROM traces.activity_dictionary d
   WHERE d.pass_id = p.id AND d.process > 0),
  (SELECT coalesce(max(d.device), 1) - 1 FROM traces.activity_dictionary d WHERE d.pass_id = p.id)
FROM traces.passes p WHERE p.run_id = :run AND p.ordinal = 1 AND p.activity_kept = 1
