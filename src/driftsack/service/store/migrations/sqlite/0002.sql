-- Where a journal begins after its earlier part was archived, and slim snapshots from which decisions are explained.
CREATE TABLE base (
  campaign TEXT PRIMARY KEY REFERENCES campaign (name),
  seq INTEGER NOT NULL,
  chain BLOB NOT NULL,
  at INTEGER NOT NULL,
  number INTEGER NOT NULL,
  oldest INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE milestone (
  campaign TEXT NOT NULL REFERENCES campaign (name),
  number INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (campaign, number)
);
