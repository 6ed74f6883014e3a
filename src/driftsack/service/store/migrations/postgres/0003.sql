-- Where a journal begins after its earlier part was archived, and slim snapshots from which decisions are explained.
CREATE TABLE base (
  campaign TEXT PRIMARY KEY REFERENCES campaign (name),
  seq BIGINT NOT NULL,
  chain BYTEA NOT NULL,
  at BIGINT NOT NULL,
  number BIGINT NOT NULL,
  oldest BIGINT NOT NULL
);
CREATE TABLE milestone (
  campaign TEXT NOT NULL REFERENCES campaign (name),
  number BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  body BYTEA NOT NULL,
  PRIMARY KEY (campaign, number)
);
