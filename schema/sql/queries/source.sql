-- Returns the posted code of job :id; no row if the job has none.
SELECT posted_source.text FROM jobs job JOIN sources posted_source ON posted_source.sha256 = job.source WHERE job.id = :id
