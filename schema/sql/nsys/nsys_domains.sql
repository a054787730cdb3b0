-- Event type 75: creation of an NVTX domain, once for each process.
INSERT INTO NVTX_EVENTS (start, eventType, text, globalTid, domainId)
SELECT min(start), 75, 'rooflined', globalTid, 1 FROM NVTX_EVENTS GROUP BY globalTid >> 24
