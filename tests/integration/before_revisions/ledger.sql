-- The ledger store as the code made it before it had revisions.

CREATE TABLE tenants (
    id VARCHAR NOT NULL,
    display_name TEXT NOT NULL,
    state VARCHAR NOT NULL,
    limits TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE api_keys (
    id VARCHAR NOT NULL,
    tenant VARCHAR NOT NULL,
    display_name TEXT NOT NULL,
    scopes VARCHAR NOT NULL,
    secret_sha256 VARCHAR(64) NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    PRIMARY KEY (id)
);

CREATE TABLE graphs (
    tenant VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    settings BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE requests (
    tenant VARCHAR NOT NULL,
    "key" VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    payload_hash VARCHAR(64) NOT NULL,
    job VARCHAR,
    response BLOB,
    owner VARCHAR NOT NULL,
    leased_until BIGINT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, "key")
);

CREATE TABLE jobs (
    id VARCHAR NOT NULL,
    tenant VARCHAR NOT NULL,
    graph VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    version INTEGER NOT NULL,
    request_key VARCHAR NOT NULL,
    hold VARCHAR NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    updated_at BIGINT NOT NULL,
    finished_at BIGINT,
    cancel_requested INTEGER NOT NULL,
    result BLOB,
    error BLOB,
    revision BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE accounts (
    tenant VARCHAR NOT NULL,
    account VARCHAR NOT NULL,
    balance BIGINT NOT NULL,
    PRIMARY KEY (tenant, account),
    CONSTRAINT tenant_accounts_never_negative CHECK (account NOT IN ('available', 'held') OR balance >= 0)
);

CREATE TABLE journal_groups (
    id INTEGER NOT NULL,
    tenant VARCHAR NOT NULL,
    "key" VARCHAR NOT NULL,
    job VARCHAR NOT NULL,
    request_key VARCHAR NOT NULL,
    reason TEXT NOT NULL,
    price_version VARCHAR NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (tenant, "key")
);

CREATE TABLE holds (
    id VARCHAR NOT NULL,
    tenant VARCHAR NOT NULL,
    job VARCHAR NOT NULL,
    request_key VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    ceiling BIGINT NOT NULL,
    spent BIGINT NOT NULL,
    settled BIGINT NOT NULL,
    goodwill BIGINT NOT NULL,
    refunded BIGINT NOT NULL,
    price_version VARCHAR NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (id),
    CONSTRAINT settled_within_hold CHECK (settled <= ceiling),
    CONSTRAINT refunded_within_settled CHECK (refunded <= settled)
);

CREATE TABLE goodwill_days (
    tenant VARCHAR NOT NULL,
    day INTEGER NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (tenant, day)
);

CREATE TABLE price_tables (
    version VARCHAR NOT NULL,
    prices TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (version)
);

CREATE TABLE outbox (
    job VARCHAR NOT NULL,
    payload BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    taken_at BIGINT,
    PRIMARY KEY (job),
    FOREIGN KEY(job) REFERENCES jobs (id)
);

CREATE TABLE journal_entries (
    id INTEGER NOT NULL,
    "group" BIGINT NOT NULL,
    tenant VARCHAR NOT NULL,
    account VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    amount BIGINT NOT NULL,
    balance_after BIGINT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT an_entry_moves_something CHECK (amount <> 0),
    FOREIGN KEY("group") REFERENCES journal_groups (id)
);

CREATE TABLE spends (
    job VARCHAR NOT NULL,
    step VARCHAR NOT NULL,
    hold VARCHAR NOT NULL,
    amount BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (job, step),
    FOREIGN KEY(hold) REFERENCES holds (id)
);

CREATE INDEX ix_api_keys_tenant ON api_keys (tenant);

CREATE INDEX ix_requests_created_at ON requests (created_at);

CREATE INDEX jobs_of_tenant ON jobs (tenant, created_at, id);

CREATE INDEX jobs_unfinished ON jobs (tenant, created_at) WHERE finished_at IS NULL;

CREATE INDEX ix_holds_job ON holds (job);

CREATE INDEX holds_open ON holds (tenant, expires_at) WHERE ended_at IS NULL;

CREATE INDEX journal_of_tenant ON journal_entries (tenant, id);

CREATE INDEX ix_journal_entries_group ON journal_entries ("group");

CREATE INDEX ix_spends_hold ON spends (hold);

CREATE TRIGGER journal_groups_no_update BEFORE UPDATE ON journal_groups BEGIN SELECT RAISE(ABORT, 'journal_groups is never changed'); END;

CREATE TRIGGER journal_groups_no_delete BEFORE DELETE ON journal_groups BEGIN SELECT RAISE(ABORT, 'journal_groups is never changed'); END;

CREATE TRIGGER journal_entries_no_update BEFORE UPDATE ON journal_entries BEGIN SELECT RAISE(ABORT, 'journal_entries is never changed'); END;

CREATE TRIGGER journal_entries_no_delete BEFORE DELETE ON journal_entries BEGIN SELECT RAISE(ABORT, 'journal_entries is never changed'); END;
