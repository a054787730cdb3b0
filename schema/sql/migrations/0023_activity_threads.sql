-- Activity rows gain the thread of host activity, the device and context of device work, and the kinds of memory of copies. These
-- values are unknown (0) in older rows.
CREATE TABLE memory_kinds (kind INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO memory_kinds (kind, name) VALUES (1, 'pageable'), (2, 'pinned'), (3, 'device'), (4, 'array'), (5, 'managed'),
  (6, 'device_static'), (7, 'managed_static');
ALTER TABLE activity_dictionary ADD COLUMN process INTEGER NOT NULL DEFAULT 0;
ALTER TABLE activity_dictionary ADD COLUMN thread INTEGER NOT NULL DEFAULT 0;
ALTER TABLE activity_dictionary ADD COLUMN device INTEGER NOT NULL DEFAULT 0;
ALTER TABLE activity_dictionary ADD COLUMN context INTEGER NOT NULL DEFAULT 0;
ALTER TABLE activity_dictionary ADD COLUMN source_memory INTEGER NOT NULL DEFAULT 0;
ALTER TABLE activity_dictionary ADD COLUMN destination_memory INTEGER NOT NULL DEFAULT 0;
PRAGMA user_version = 23;
