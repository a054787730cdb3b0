UPDATE jobs SET state = 'completed', finished_ns = :now
WHERE id = :job AND state = 'running'
  AND NOT EXISTS (SELECT 1 FROM passes WHERE job_id = :job AND state IN ('pending', 'running'))
RETURNING id
