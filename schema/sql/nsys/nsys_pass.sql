-- Selects the activity pass of run :run, and computes nsys's global id of its process: process * 2^24.
INSERT INTO temp.exported_pass
SELECT pass.id, pass.job_id, pass.run_id,
  (SELECT iif(count(DISTINCT entry.process) = 1, max(entry.process) << 24, NULL) FROM traces.activity_dictionary entry
   WHERE entry.pass_id = pass.id AND entry.process > 0),
  (SELECT coalesce(max(entry.device), 1) - 1 FROM traces.activity_dictionary entry WHERE entry.pass_id = pass.id)
FROM traces.passes pass WHERE pass.run_id = :run AND pass.ordinal = 1 AND pass.activity_kept = 1
