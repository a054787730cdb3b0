-- Returns the numbers of rows, names and dictionary entries of a pass that are stored.
SELECT (SELECT coalesce(sum(activity_rows), 0) FROM activity_groups WHERE pass_id = :pass),
  (SELECT count(*) FROM names WHERE pass_id = :pass), (SELECT count(*) FROM activity_dictionary WHERE pass_id = :pass)
