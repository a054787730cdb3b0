-- The view v_floors has operations_per_s.
PRAGMA user_version = 27;
