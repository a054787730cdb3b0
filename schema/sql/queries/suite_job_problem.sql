-- :job. Column: why the job failed, or ''.
SELECT coalesce(problem_message, '') FROM jobs WHERE id = :job
