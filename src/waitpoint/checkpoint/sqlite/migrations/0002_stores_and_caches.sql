-- Stores and caches beside the threads.

-- What outlives threads: items by namespace and key. A namespace is its labels, each with a '.' after it, so that all
-- below one lie in a row. `seq` is the order in which they were first put.
CREATE TABLE store_item (
    seq INTEGER PRIMARY KEY,
    ns TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    ttl REAL, -- minutes after which it expires if nobody reads it
    expires_at REAL
);

CREATE UNIQUE INDEX store_item_key ON store_item (ns, key);

CREATE INDEX store_item_expires ON store_item (expires_at) WHERE expires_at IS NOT NULL;

-- The vectors of an item's texts: 32-bit floats, little-endian, of length 1.
CREATE TABLE store_vector (
    seq INTEGER NOT NULL,
    path TEXT NOT NULL,
    vector BLOB NOT NULL
);

CREATE UNIQUE INDEX store_vector_key ON store_vector (seq, path);

-- Results that need not be computed again; a namespace is its labels as JSON.
CREATE TABLE cache_entry (
    ns TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    expires_at REAL
);

CREATE UNIQUE INDEX cache_entry_key ON cache_entry (ns, key);

CREATE INDEX cache_entry_expires ON cache_entry (expires_at) WHERE expires_at IS NOT NULL;
