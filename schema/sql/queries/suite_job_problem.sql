-- :job. Column: why the job failed; '': it did not.
SELECT coalesce(problem_message, '') FROM jobs WHERE id = :job
