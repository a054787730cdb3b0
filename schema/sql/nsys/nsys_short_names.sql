INSERT INTO temp.short_names
SELECT s.id, (SELECT min(id) FROM StringIds WHERE value = kernel_base_name(s.value)) FROM StringIds s
WHERE s.id IN (SELECT name FROM traces.activity_dictionary WHERE pass_id = (SELECT pass FROM temp.exported_pass) AND grid_x > 0)
