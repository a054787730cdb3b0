-- The view v_floors gains the column operations_per_s.
PRAGMA user_version = 27;
