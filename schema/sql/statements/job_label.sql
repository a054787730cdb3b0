-- Changes the name and tags of job :job. :patch is a JSON merge patch of its request.
UPDATE jobs SET request = json_patch(request, :patch) WHERE id = :job
