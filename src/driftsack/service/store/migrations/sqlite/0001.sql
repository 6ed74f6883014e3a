-- Campaigns, their journals and budgets. The database itself refuses gaps, stale owners and overspending.
CREATE TABLE campaign (
  name TEXT PRIMARY KEY,
  config BLOB NOT NULL,
  epoch INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  chain BLOB NOT NULL,
  owner TEXT NOT NULL,
  owner_url TEXT NOT NULL,
  lease_until REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE budget (
  campaign TEXT NOT NULL REFERENCES campaign (name),
  season INTEGER NOT NULL,
  resource INTEGER NOT NULL,
  granted INTEGER NOT NULL,
  reserved INTEGER NOT NULL,
  spent INTEGER NOT NULL,
  overrun INTEGER NOT NULL,
  PRIMARY KEY (campaign, season, resource),
  CHECK (reserved >= 0 AND spent >= 0 AND overrun >= 0 AND spent + reserved <= granted + overrun)
) WITHOUT ROWID;
CREATE TABLE segment (
  campaign TEXT NOT NULL REFERENCES campaign (name),
  first INTEGER NOT NULL,
  last INTEGER NOT NULL CHECK (last >= first),
  at INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  deltas TEXT NOT NULL,
  body BLOB NOT NULL,
  chain BLOB NOT NULL,
  PRIMARY KEY (campaign, first)
);
CREATE TRIGGER segment_append BEFORE INSERT ON segment BEGIN
  SELECT RAISE(ABORT, 'fenced') WHERE NOT EXISTS (
    SELECT 1 FROM campaign WHERE name = NEW.campaign AND epoch = NEW.epoch AND seq = NEW.first - 1);
  UPDATE campaign SET seq = NEW.last, chain = NEW.chain WHERE name = NEW.campaign;
  INSERT INTO budget SELECT NEW.campaign, value ->> 0, value ->> 1, value ->> 3, value ->> 4, value ->> 5, value ->> 6
    FROM json_each(NEW.deltas) WHERE value ->> 2;
  UPDATE budget SET
      granted = budget.granted + d.granted, reserved = budget.reserved + d.reserved,
      spent = budget.spent + d.spent, overrun = budget.overrun + d.overrun
    FROM (SELECT value ->> 0 AS season, value ->> 1 AS resource, value ->> 3 AS granted, value ->> 4 AS reserved,
                 value ->> 5 AS spent, value ->> 6 AS overrun
          FROM json_each(NEW.deltas) WHERE NOT value ->> 2) AS d
    WHERE budget.campaign = NEW.campaign AND budget.season = d.season AND budget.resource = d.resource;
END;
CREATE TRIGGER segment_kept BEFORE UPDATE ON segment BEGIN SELECT RAISE(ABORT, 'segments are append-only'); END;
CREATE TABLE snapshot (
  campaign TEXT NOT NULL REFERENCES campaign (name),
  seq INTEGER NOT NULL,
  chain BLOB NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (campaign, seq)
);
CREATE TABLE api_key (
  prefix TEXT PRIMARY KEY,
  hash BLOB NOT NULL,
  scopes TEXT NOT NULL,
  campaigns TEXT,
  expires INTEGER,
  note TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  who TEXT NOT NULL,
  action TEXT NOT NULL,
  campaign TEXT,
  detail TEXT NOT NULL
);
