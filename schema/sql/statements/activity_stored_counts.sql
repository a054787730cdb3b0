-- Returns the numbers of stored activity rows, names and dictionary entries of a pass.
SELECT (SELECT coalesce(sum(activity_rows), 0) FROM activity_groups WHERE pass_id = :pass),
  (SELECT count(*) FROM names WHERE pass_id = :pass), (SELECT count(*) FROM activity_dictionary WHERE pass_id = :pass)
