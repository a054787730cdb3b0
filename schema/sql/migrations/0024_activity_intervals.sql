-- Adds sums of short activity rows over intervals of time. The rows of older passes are in no interval.
ALTER TABLE activity_groups ADD COLUMN first_level INTEGER;
CREATE TABLE activity_intervals (
  pass_id INTEGER NOT NULL REFERENCES passes ON DELETE CASCADE,
  level INTEGER NOT NULL, -- an interval of level n lasts 1,024 times 4 to the power of n, in ns
  start_ns INTEGER NOT NULL, -- start of the interval, a multiple of its duration
  kind INTEGER NOT NULL REFERENCES activity_kinds,
  device INTEGER NOT NULL, -- device, stream, thread: as in activity_dictionary; 0: none
  stream INTEGER NOT NULL,
  thread INTEGER NOT NULL,
  activity_rows INTEGER NOT NULL,
  busy_ns INTEGER NOT NULL, -- sum of the rows' durations
  longest_ns INTEGER NOT NULL,
  name INTEGER NOT NULL, -- name of the longest row, an ordinal in names
  PRIMARY KEY (pass_id, level, start_ns, kind, device, stream, thread)
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 24;
