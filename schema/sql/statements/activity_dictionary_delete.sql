DELETE FROM activity_dictionary WHERE (pass_id, entry) IN
  (SELECT pass_id, entry FROM activity_dictionary WHERE pass_id = :pass LIMIT :batch)
