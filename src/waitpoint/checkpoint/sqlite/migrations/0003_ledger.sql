-- What a server keeps beside the threads.

CREATE TABLE assistant (
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    in_force INTEGER NOT NULL,
    graph TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    config TEXT NOT NULL,
    context TEXT NOT NULL,
    metadata TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
);

CREATE UNIQUE INDEX assistant_version ON assistant (id, version);

-- `halted` is the thread's fence when its last run was cancelled or reached a breakpoint.
CREATE TABLE served_thread (
    id TEXT NOT NULL PRIMARY KEY,
    graph TEXT,
    metadata TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    halted INTEGER,
    ttl REAL,
    ttl_strategy TEXT NOT NULL,
    last_seq INTEGER NOT NULL DEFAULT 0 -- number of the last entry of its log
);

CREATE INDEX served_thread_updated ON served_thread (updated_at);

CREATE TABLE run (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- the order in which they were asked for
    id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    graph TEXT NOT NULL,
    assistant_id TEXT NOT NULL,
    status TEXT NOT NULL,
    request TEXT NOT NULL,
    metadata TEXT NOT NULL,
    strategy TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    due_at REAL NOT NULL,
    is_settled INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    owner TEXT,
    lease_until REAL,
    cancel TEXT,
    outcome TEXT NOT NULL,
    "by" TEXT,
    token TEXT, -- the same again is the same run
    hook_at REAL, -- when its webhook is to be tried next
    is_pruned INTEGER NOT NULL DEFAULT 0 -- whether the bulk of its log is gone
);

CREATE UNIQUE INDEX run_id ON run (id);

CREATE UNIQUE INDEX run_token ON run (thread_id, token) WHERE token IS NOT NULL;

CREATE INDEX run_hook ON run (hook_at) WHERE hook_at IS NOT NULL;

CREATE INDEX run_unpruned ON run (updated_at) WHERE is_pruned = 0;

CREATE INDEX run_thread ON run (thread_id, number);

-- What is due or running: few of many.
CREATE INDEX run_active ON run (status, due_at) WHERE status = 'pending' OR status = 'running';

CREATE INDEX run_active_thread ON run (thread_id) WHERE status = 'pending' OR status = 'running';

CREATE TABLE log_entry (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- the order over all threads
    thread_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    ns TEXT NOT NULL,
    at REAL NOT NULL,
    data BLOB NOT NULL
);

CREATE UNIQUE INDEX log_entry_key ON log_entry (thread_id, seq);

CREATE INDEX log_entry_run ON log_entry (run_id);

CREATE TABLE api_key (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at REAL NOT NULL,
    revoked_at REAL
);

CREATE UNIQUE INDEX api_key_hash ON api_key (hash);
