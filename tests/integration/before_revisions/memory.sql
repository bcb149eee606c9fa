-- The memory store as the code made it before it had revisions.

CREATE TABLE memory_episodes (
    scope VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    job VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    text TEXT NOT NULL,
    reference_time BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    tokens INTEGER NOT NULL,
    position INTEGER NOT NULL,
    session TEXT,
    session_key VARCHAR,
    document TEXT,
    document_key VARCHAR,
    version INTEGER,
    heading TEXT NOT NULL,
    title TEXT NOT NULL,
    source TEXT NOT NULL,
    metadata TEXT NOT NULL,
    deleted_at BIGINT,
    unlearned_at BIGINT,
    PRIMARY KEY (scope, id)
);

CREATE TABLE memory_versions (
    scope VARCHAR NOT NULL,
    document_key VARCHAR NOT NULL,
    version INTEGER NOT NULL,
    document TEXT NOT NULL,
    hash VARCHAR NOT NULL,
    text TEXT NOT NULL,
    reference_time BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    job VARCHAR NOT NULL,
    title TEXT NOT NULL,
    PRIMARY KEY (scope, document_key, version)
);

CREATE TABLE memory_staged (
    scope VARCHAR NOT NULL,
    episode VARCHAR NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (scope, episode)
);

CREATE TABLE memory_revisions (
    scope VARCHAR NOT NULL,
    revision BIGINT NOT NULL,
    commit_id VARCHAR NOT NULL,
    at BIGINT NOT NULL,
    published BOOLEAN NOT NULL,
    payload BLOB NOT NULL,
    summary TEXT NOT NULL,
    PRIMARY KEY (scope, revision)
);

CREATE TABLE memory_voice (
    scope VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    text TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    forgotten_at BIGINT,
    PRIMARY KEY (scope, id)
);

CREATE TABLE memory_voice_revocations (
    scope VARCHAR NOT NULL,
    record VARCHAR NOT NULL,
    revoked_at BIGINT NOT NULL,
    PRIMARY KEY (scope, record)
);

CREATE TABLE memory_decisions (
    scope VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    revision BIGINT NOT NULL,
    at BIGINT NOT NULL,
    action VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    actor TEXT NOT NULL,
    why TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt_version TEXT NOT NULL,
    PRIMARY KEY (scope, id)
);

CREATE TABLE memory_passages (
    scope VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    episode VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    text TEXT NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    hash VARCHAR NOT NULL,
    speaker TEXT NOT NULL,
    role VARCHAR NOT NULL,
    message_id TEXT NOT NULL,
    message_key VARCHAR,
    said_at BIGINT,
    session_key VARCHAR,
    document_key VARCHAR,
    version INTEGER,
    PRIMARY KEY (scope, id),
    FOREIGN KEY(scope, episode) REFERENCES memory_episodes (scope, id)
);

CREATE TABLE memory_voice_claims (
    scope VARCHAR NOT NULL,
    voice VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    episode VARCHAR NOT NULL,
    passage VARCHAR,
    quote TEXT NOT NULL,
    attested_at BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    PRIMARY KEY (scope, voice, id),
    FOREIGN KEY(scope, voice) REFERENCES memory_voice (scope, id)
);

CREATE TABLE memory_voice_ends (
    scope VARCHAR NOT NULL,
    voice VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    at BIGINT NOT NULL,
    "by" VARCHAR,
    episode VARCHAR,
    why TEXT NOT NULL,
    recorded_at BIGINT NOT NULL,
    PRIMARY KEY (scope, voice, id),
    FOREIGN KEY(scope, voice) REFERENCES memory_voice (scope, id)
);

CREATE INDEX memory_episodes_document ON memory_episodes (scope, document_key, reference_time, id);

CREATE INDEX memory_episodes_job ON memory_episodes (scope, job, position, id);

CREATE INDEX memory_episodes_said ON memory_episodes (scope, reference_time, id);

CREATE INDEX memory_episodes_recent ON memory_episodes (scope, session_key, created_at, position, id);

CREATE INDEX memory_episodes_session ON memory_episodes (scope, session_key, reference_time, id);

CREATE INDEX memory_versions_job ON memory_versions (scope, job);

CREATE UNIQUE INDEX memory_revisions_commit ON memory_revisions (scope, commit_id);

CREATE INDEX memory_voice_created ON memory_voice (scope, created_at, id);

CREATE INDEX memory_decisions_target ON memory_decisions (scope, target, revision, at, id);

CREATE INDEX memory_decisions_newest ON memory_decisions (scope, revision, at, id);

CREATE INDEX memory_passages_document ON memory_passages (scope, document_key, id);

CREATE INDEX memory_passages_message ON memory_passages (scope, session_key, message_key);

CREATE INDEX memory_passages_episode ON memory_passages (scope, episode, position, id);

CREATE INDEX memory_passages_session_hash ON memory_passages (scope, session_key, hash);

CREATE INDEX memory_passages_document_hash ON memory_passages (scope, document_key, hash);

CREATE INDEX memory_voice_claims_episode ON memory_voice_claims (scope, episode);

CREATE INDEX memory_voice_ends_episode ON memory_voice_ends (scope, episode);
