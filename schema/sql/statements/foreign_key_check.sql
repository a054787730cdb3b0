SELECT 1 FROM pragma_foreign_key_check LIMIT 1
