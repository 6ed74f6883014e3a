-- The labels of all requests with a key, as a JSON object, for keys that fix some.
CREATE TABLE key_labels (
  prefix TEXT PRIMARY KEY,
  labels TEXT NOT NULL
) WITHOUT ROWID;
