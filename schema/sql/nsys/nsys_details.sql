INSERT INTO ANALYSIS_DETAILS
SELECT 0, max(last) - min(first), min(first), max(last) FROM (
  SELECT min(start) AS first, max("end") AS last FROM CUPTI_ACTIVITY_KIND_KERNEL
  UNION ALL SELECT min(start), max("end") FROM CUPTI_ACTIVITY_KIND_MEMCPY
  UNION ALL SELECT min(start), max("end") FROM CUPTI_ACTIVITY_KIND_MEMSET
  UNION ALL SELECT min(start), max("end") FROM CUPTI_ACTIVITY_KIND_RUNTIME
  UNION ALL SELECT min(start), max("end") FROM NVTX_EVENTS)
HAVING max(last) IS NOT NULL
