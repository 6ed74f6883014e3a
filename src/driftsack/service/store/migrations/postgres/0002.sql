-- One lease for each process instead of one for each campaign, so that idle campaigns write nothing.
CREATE TABLE owner (
  name TEXT PRIMARY KEY,
  lease_until DOUBLE PRECISION NOT NULL
);
INSERT INTO owner SELECT owner, max(lease_until) FROM campaign WHERE lease_until > 0 GROUP BY owner;
UPDATE campaign SET owner = '' WHERE lease_until = 0;
ALTER TABLE campaign DROP COLUMN lease_until;
