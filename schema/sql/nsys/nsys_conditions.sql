INSERT INTO META_DATA_CAPTURE
SELECT c.key, c.value FROM temp.exported_pass e JOIN traces.passes p ON p.id = e.pass JOIN traces.runs r ON r.id = e.run
  JOIN json_each(json_object('ROOFLINED_JOB', e.job, 'ROOFLINED_RUN', e.run, 'ROOFLINED_WORKLOAD', r.workload,
                             'ROOFLINED_VARIANT', r.variant, 'ROOFLINED_COMMIT', p.git_commit)) c
