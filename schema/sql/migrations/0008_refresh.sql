-- Jobs that the daemon asks for itself, and what a CPU's clocks follow.

ALTER TABLE jobs ADD COLUMN origin TEXT NOT NULL DEFAULT 'client' CHECK (origin IN ('client', 'daemon'));

-- Of a CPU, beside its name: NULL where the system does not say.
ALTER TABLE devices ADD COLUMN clock_setting TEXT AS (
  nullif(facts ->> '$.governor', '') || ', at most ' || round((facts ->> '$.clock_max_khz') / 1000.0) || ' MHz');

DROP VIEW v_ceiling_passes;
-- The newest ceilings of each device and driver. stale_reason: the device was seen with another driver or other clocks since.
CREATE VIEW v_ceiling_passes AS
SELECT p.job_id AS job, p.run_id AS run, p.id AS pass_id, j.device, d.name AS device_name, d.identity AS device_identity, d.driver,
  p.finished_at AS at, unixepoch() - p.finished_ns / 1000000000 AS age_s, p.git_commit, d.sm_clock_max_mhz, d.memory_clock_max_mhz,
  CASE WHEN now.driver IS NOT d.driver THEN printf('measured with driver %s, and the device has %s now', d.driver, now.driver)
       WHEN now.sm_clock_max_mhz IS NOT d.sm_clock_max_mhz OR now.memory_clock_max_mhz IS NOT d.memory_clock_max_mhz
       THEN printf('measured with clocks of at most %g and %g MHz, and the device has %g and %g MHz now', d.sm_clock_max_mhz,
                   d.memory_clock_max_mhz, now.sm_clock_max_mhz, now.memory_clock_max_mhz)
       WHEN now.clock_setting IS NOT d.clock_setting
       THEN printf('measured with the clocks set to %s, and the device has %s now', coalesce(d.clock_setting, 'what is not known'),
                   coalesce(now.clock_setting, 'what is not known')) END AS stale_reason,
  d.clock_setting
FROM runs r JOIN passes p ON p.run_id = r.id AND p.ordinal = 0 AND p.state = 'completed'
  JOIN jobs j ON j.id = p.job_id JOIN devices d ON d.id = p.device_id
  JOIN devices now ON now.id = (SELECT id FROM devices WHERE identity = d.identity ORDER BY last_ns DESC LIMIT 1)
WHERE r.workload = 'ceilings' AND r.id = (
  SELECT nr.id FROM runs nr CROSS JOIN passes np ON np.run_id = nr.id AND np.ordinal = 0 AND np.state = 'completed'
    CROSS JOIN devices nd ON nd.id = np.device_id
  WHERE nr.workload = 'ceilings' AND nd.identity = d.identity AND nd.driver IS d.driver ORDER BY nr.id DESC LIMIT 1);

PRAGMA user_version = 8;
