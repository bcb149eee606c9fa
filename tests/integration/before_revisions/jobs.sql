-- The jobs store as the code made it before it had revisions.

CREATE TABLE job_progress (
    job VARCHAR NOT NULL,
    last_event INTEGER NOT NULL,
    PRIMARY KEY (job)
);

CREATE TABLE job_chunks (
    job VARCHAR NOT NULL,
    "index" INTEGER NOT NULL,
    stage INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (job, "index")
);

CREATE TABLE job_events (
    job VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    chunk BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (job, number)
);

CREATE TABLE job_receipts (
    job VARCHAR NOT NULL,
    step VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    engine VARCHAR NOT NULL,
    receipts BLOB NOT NULL,
    PRIMARY KEY (job, step)
);

CREATE TABLE artifacts (
    job VARCHAR NOT NULL,
    chunk INTEGER NOT NULL,
    stage VARCHAR NOT NULL,
    data BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (job, chunk, stage)
);

CREATE INDEX ix_job_events_created_at ON job_events (created_at);
