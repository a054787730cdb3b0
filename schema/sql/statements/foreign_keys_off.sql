PRAGMA foreign_keys = OFF
