INSERT INTO StringIds SELECT ordinal, name FROM traces.names WHERE pass_id = (SELECT pass FROM temp.exported_pass)
