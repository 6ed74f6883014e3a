-- Campaigns, their journals and budgets. The database itself refuses gaps, stale owners and overspending.
CREATE TABLE campaign (
  name TEXT PRIMARY KEY,
  config BYTEA NOT NULL,
  epoch BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  chain BYTEA NOT NULL,
  owner TEXT NOT NULL,
  owner_url TEXT NOT NULL,
  lease_until DOUBLE PRECISION NOT NULL
);
CREATE TABLE budget (
  campaign TEXT NOT NULL REFERENCES campaign (name),
  season BIGINT NOT NULL,
  resource BIGINT NOT NULL,
  granted BIGINT NOT NULL,
  reserved BIGINT NOT NULL,
  spent BIGINT NOT NULL,
  overrun BIGINT NOT NULL,
  PRIMARY KEY (campaign, season, resource),
  CHECK (reserved >= 0 AND spent >= 0 AND overrun >= 0 AND spent + reserved <= granted + overrun)
);
CREATE TABLE segment (
  campaign TEXT NOT NULL REFERENCES campaign (name),
  first BIGINT NOT NULL,
  last BIGINT NOT NULL CHECK (last >= first),
  at BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  deltas TEXT NOT NULL,
  body BYTEA NOT NULL,
  chain BYTEA NOT NULL,
  PRIMARY KEY (campaign, first)
);
CREATE TABLE snapshot (
  campaign TEXT NOT NULL REFERENCES campaign (name),
  seq BIGINT NOT NULL,
  chain BYTEA NOT NULL,
  body BYTEA NOT NULL,
  PRIMARY KEY (campaign, seq)
);
CREATE TABLE api_key (
  prefix TEXT PRIMARY KEY,
  hash BYTEA NOT NULL,
  scopes TEXT NOT NULL,
  campaigns TEXT,
  expires BIGINT,
  note TEXT NOT NULL
);
CREATE TABLE audit (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at BIGINT NOT NULL,
  who TEXT NOT NULL,
  action TEXT NOT NULL,
  campaign TEXT,
  detail TEXT NOT NULL
);
CREATE RULE segment_kept AS ON UPDATE TO segment DO INSTEAD NOTHING;
