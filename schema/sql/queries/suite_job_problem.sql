-- Returns why job :job failed; '' if it did not fail.
SELECT coalesce(problem_message, '') FROM jobs WHERE id = :job
