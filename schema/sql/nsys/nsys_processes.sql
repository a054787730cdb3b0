INSERT INTO PROCESSES
SELECT DISTINCT entry.process << 24, entry.process, 'rooflined-worker'
FROM temp.exported_pass exported_pass CROSS JOIN traces.activity_dictionary entry ON entry.pass_id = exported_pass.pass
  WHERE entry.process > 0
