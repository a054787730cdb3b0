CREATE TRIGGER history_configuration AFTER DELETE ON history BEGIN
  DELETE FROM configurations
  WHERE id = old.configuration_id AND NOT EXISTS (SELECT 1 FROM history WHERE configuration_id = old.configuration_id);
END;
PRAGMA user_version = 16;
