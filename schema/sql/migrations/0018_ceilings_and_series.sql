-- An index finds the newest ceilings of a device. Series are deleted with their last run.
ALTER TABLE passes ADD COLUMN measures_ceilings INTEGER NOT NULL DEFAULT 0 CHECK (measures_ceilings IN (0, 1));
UPDATE passes SET measures_ceilings = 1
WHERE ordinal = 0 AND run_id IN (SELECT id FROM runs WHERE workload = 'ceilings');
CREATE INDEX passes_with_ceilings ON passes (device_id, run_id) WHERE measures_ceilings = 1 AND state = 'completed';

CREATE TRIGGER history_series_deleted AFTER DELETE ON history_series BEGIN
  DELETE FROM history_metrics WHERE (metric, series_id) IN (SELECT value, old.id FROM json_each(old.metrics));
END;
CREATE TRIGGER history_deleted AFTER DELETE ON history BEGIN
  DELETE FROM history_series
  WHERE id = old.series_id AND NOT EXISTS (SELECT 1 FROM history WHERE series_id = old.series_id);
END;
CREATE TRIGGER history_moved AFTER UPDATE OF series_id ON history WHEN new.series_id <> old.series_id BEGIN
  DELETE FROM history_series
  WHERE id = old.series_id AND NOT EXISTS (SELECT 1 FROM history WHERE series_id = old.series_id);
END;
DELETE FROM history_series WHERE NOT EXISTS (SELECT 1 FROM history WHERE series_id = history_series.id);
PRAGMA user_version = 18;
