-- :job :patch. A JSON merge patch of the job's name and tags.
UPDATE jobs SET request = json_patch(request, :patch) WHERE id = :job
