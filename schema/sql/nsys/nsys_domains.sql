-- Adds an event of type 75, the creation of an NVTX domain, for each process.
INSERT INTO NVTX_EVENTS (start, eventType, text, globalTid, domainId)
SELECT min(start), 75, 'rooflined', globalTid, 1 FROM NVTX_EVENTS GROUP BY globalTid >> 24
