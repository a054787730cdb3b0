-- Adds the short names of kernels that are not yet among the strings.
INSERT INTO StringIds
SELECT (SELECT max(id) FROM StringIds) + row_number() OVER (), short
FROM (SELECT DISTINCT kernel_base_name(value) AS short FROM StringIds
      WHERE id IN (SELECT name FROM traces.activity_dictionary WHERE pass_id = (SELECT pass FROM temp.exported_pass) AND grid_x > 0))
WHERE short NOT IN (SELECT value FROM StringIds)
