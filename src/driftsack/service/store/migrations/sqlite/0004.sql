-- Contexts as they were sent, for campaigns that keep them. They are outside the hash chain, so that they can be deleted.
CREATE TABLE raw_context (
  campaign TEXT NOT NULL REFERENCES campaign (name),
  number INTEGER NOT NULL,
  until INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (campaign, number)
);
CREATE INDEX raw_context_until ON raw_context (until);
