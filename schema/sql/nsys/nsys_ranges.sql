-- The ranges of the domain rooflined (59: push and pop). On a CPU each launch is inside a range with its name and times.
INSERT INTO NVTX_EVENTS (start, "end", eventType, text, globalTid, domainId)
SELECT a.start_ns, a.start_ns + a.duration_ns, 59, n.value, iif(d.thread > 0, d.process << 24 | d.thread, NULL), 1
FROM temp.exported_pass e CROSS JOIN traces.activity_groups g ON g.pass_id = e.pass
  CROSS JOIN traces.activity a ON a.pass_id = g.pass_id AND a.activity_group = g.activity_group
  CROSS JOIN traces.activity_dictionary d ON d.pass_id = a.pass_id AND d.entry = a.entry
  CROSS JOIN StringIds n ON n.id = d.name
WHERE g.kind IN (SELECT kind FROM traces.activity_kinds WHERE name IN ('range', 'span'))
