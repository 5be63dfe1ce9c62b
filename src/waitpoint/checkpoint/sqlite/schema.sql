-- How threads, and stores and caches beside them, lie in a SQLite file. This is the truth: the numbered migrations lead
-- to the same.
--
-- A thread's key (id and graph) is long and stands in every row, so rows name their thread by a number, `tid`.
-- Items and events are numbered within their thread; both numbers are packed into the row's own key,
-- tid << 32 | number, so that a thread's items lie together and need no index.
-- Text that is not valid Unicode (an error may quote a file name) is kept as a blob of its UTF-8 with surrogates.

CREATE TABLE thread (
    tid INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL,
    graph TEXT NOT NULL,
    status TEXT NOT NULL,
    fence INTEGER NOT NULL,
    answer_seq INTEGER NOT NULL,
    next_item INTEGER NOT NULL,
    head TEXT,
    owner TEXT,
    lease_until REAL,
    error TEXT,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    events INTEGER NOT NULL DEFAULT 0, -- number of the thread's last event
    UNIQUE (thread_id, graph)
);

-- Who has to run, and whose leases a heartbeat extends: few threads of many.
CREATE INDEX thread_due ON thread (status, owner) WHERE status = 'ready' OR status = 'running';

CREATE TABLE checkpoint (
    tid INTEGER NOT NULL,
    ns TEXT NOT NULL,
    id TEXT NOT NULL,
    parent_id TEXT,
    step INTEGER NOT NULL,
    source TEXT NOT NULL,
    created_at REAL NOT NULL,
    body BLOB NOT NULL
);

CREATE UNIQUE INDEX checkpoint_key ON checkpoint (tid, ns, id);

CREATE TABLE item (
    key INTEGER PRIMARY KEY, -- tid << 32 | seq
    data BLOB NOT NULL
);

CREATE TABLE outcome (
    tid INTEGER NOT NULL,
    ns TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    node TEXT NOT NULL,
    status TEXT NOT NULL,
    answer_seq INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at REAL NOT NULL,
    body BLOB NOT NULL
);

CREATE UNIQUE INDEX outcome_key ON outcome (tid, ns, checkpoint_id, task_id);

CREATE TABLE journal (
    tid INTEGER NOT NULL,
    ns TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    at REAL NOT NULL,
    token TEXT NOT NULL,
    body BLOB NOT NULL
);

CREATE UNIQUE INDEX journal_key ON journal (tid, ns, checkpoint_id, task_id, seq);

CREATE TABLE question (
    id TEXT NOT NULL,
    tid INTEGER NOT NULL,
    ns TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    root_checkpoint TEXT NOT NULL,
    task_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    node TEXT NOT NULL,
    value BLOB NOT NULL,
    schema BLOB,
    digest TEXT NOT NULL,
    qkey TEXT,
    site BLOB NOT NULL,
    extra BLOB NOT NULL,
    asked_at REAL NOT NULL,
    status TEXT NOT NULL,
    replaceable INTEGER NOT NULL,
    settled_at REAL,
    settle_seq INTEGER,
    "by" TEXT,
    comment TEXT,
    answer BLOB,
    token TEXT,
    reason TEXT
);

CREATE UNIQUE INDEX question_id ON question (id);

CREATE INDEX question_root ON question (tid, root_checkpoint);

CREATE INDEX question_checkpoint ON question (tid, ns, checkpoint_id) WHERE ns <> '';

-- What a person can answer, oldest first: however many are settled, these alone are read.
CREATE INDEX question_open ON question (asked_at)
    WHERE status = 'open' OR (status = 'answered' AND replaceable);

CREATE TABLE event (
    key INTEGER PRIMARY KEY, -- tid << 32 | seq
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    ref TEXT NOT NULL,
    data BLOB NOT NULL
);

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

-- What a server keeps beside the threads: assistants, what it knows of threads, runs, the log of what happened in them, keys.
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
