INSERT INTO activity_groups (pass_id, activity_group, kind, activity_rows, longest_ns, first_level)
VALUES (:pass, :group, :kind, :rows, :longest, :first_level)
ON CONFLICT (pass_id, activity_group) DO UPDATE SET activity_rows = activity_rows + excluded.activity_rows,
  longest_ns = max(longest_ns, excluded.longest_ns)
