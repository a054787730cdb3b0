-- Stores the item of job :job in lists of jobs, or those of all jobs (:job NULL).
UPDATE jobs SET listing = (SELECT listing FROM v_listings WHERE job = jobs.id)
WHERE id BETWEEN coalesce(:job, 0) AND coalesce(:job, 9223372036854775807) AND state NOT IN ('running', 'interrupted')
