-- :id. The posted code of a job; no row if it has none.
SELECT s.text FROM jobs j JOIN sources s ON s.sha256 = j.source WHERE j.id = :id
