INSERT INTO PROCESSES
SELECT DISTINCT d.process << 24, d.process, 'rooflined-worker'
FROM temp.exported_pass e CROSS JOIN traces.activity_dictionary d ON d.pass_id = e.pass WHERE d.process > 0
