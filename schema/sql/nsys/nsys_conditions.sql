INSERT INTO META_DATA_CAPTURE
SELECT condition.key, condition.value FROM temp.exported_pass exported_pass JOIN traces.passes pass
  ON pass.id = exported_pass.pass JOIN traces.runs run ON run.id = exported_pass.run
  JOIN json_each(json_object('ROOFLINED_JOB', exported_pass.job, 'ROOFLINED_RUN', exported_pass.run,
    'ROOFLINED_WORKLOAD', run.workload,
                             'ROOFLINED_VARIANT', run.variant, 'ROOFLINED_COMMIT', pass.git_commit)) condition
