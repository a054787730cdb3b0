-- nsys has the calls of the runtime and of the driver in one table.
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, "end", eventClass, globalTid, correlationId, nameId, returnValue)
SELECT a.start_ns, a.start_ns + a.duration_ns, k.name = 'driver', iif(d.thread > 0, d.process << 24 | d.thread, NULL),
  nullif(a.correlation, 0), d.name, 0
FROM temp.exported_pass e CROSS JOIN traces.activity_groups g ON g.pass_id = e.pass
  CROSS JOIN traces.activity_kinds k ON k.kind = g.kind
  CROSS JOIN traces.activity a ON a.pass_id = g.pass_id AND a.activity_group = g.activity_group
  CROSS JOIN traces.activity_dictionary d ON d.pass_id = a.pass_id AND d.entry = a.entry
WHERE k.name IN ('runtime', 'driver')
