-- The graph store as the code made it before it had revisions.

CREATE TABLE graph_entities (
    scope VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    name TEXT NOT NULL,
    "key" TEXT NOT NULL,
    type VARCHAR NOT NULL,
    aliases TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    forgotten_at BIGINT,
    PRIMARY KEY (scope, id)
);

CREATE TABLE graph_revocations (
    scope VARCHAR NOT NULL,
    record VARCHAR NOT NULL,
    statement VARCHAR NOT NULL,
    revoked_at BIGINT NOT NULL,
    PRIMARY KEY (scope, record)
);

CREATE TABLE graph_aliases (
    scope VARCHAR NOT NULL,
    key_hash VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    entity VARCHAR NOT NULL,
    "key" TEXT NOT NULL,
    name TEXT NOT NULL,
    recorded_at BIGINT NOT NULL,
    PRIMARY KEY (scope, key_hash, type, entity),
    FOREIGN KEY(scope, entity) REFERENCES graph_entities (scope, id)
);

CREATE TABLE graph_statements (
    scope VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    predicate VARCHAR NOT NULL,
    object VARCHAR,
    literal_kind VARCHAR,
    literal_text TEXT,
    fact TEXT NOT NULL,
    aspect VARCHAR,
    event_at BIGINT,
    created_at BIGINT NOT NULL,
    hull_from BIGINT NOT NULL,
    hull_to BIGINT NOT NULL,
    forgotten_at BIGINT,
    PRIMARY KEY (scope, id),
    FOREIGN KEY(scope, subject) REFERENCES graph_entities (scope, id),
    FOREIGN KEY(scope, predicate) REFERENCES graph_entities (scope, id),
    FOREIGN KEY(scope, object) REFERENCES graph_entities (scope, id)
);

CREATE TABLE graph_claims (
    scope VARCHAR NOT NULL,
    statement VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    attested_at BIGINT NOT NULL,
    episode VARCHAR,
    passage VARCHAR,
    quote TEXT NOT NULL,
    confidence DOUBLE NOT NULL,
    recorded_at BIGINT NOT NULL,
    start BIGINT,
    "end" BIGINT,
    seen BIGINT NOT NULL,
    start_precision SMALLINT NOT NULL,
    end_precision SMALLINT NOT NULL,
    time_text TEXT NOT NULL,
    PRIMARY KEY (scope, statement, id),
    FOREIGN KEY(scope, statement) REFERENCES graph_statements (scope, id)
);

CREATE TABLE graph_ends (
    scope VARCHAR NOT NULL,
    statement VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    attested_at BIGINT NOT NULL,
    episode VARCHAR,
    passage VARCHAR,
    quote TEXT NOT NULL,
    confidence DOUBLE NOT NULL,
    recorded_at BIGINT NOT NULL,
    at BIGINT NOT NULL,
    precision SMALLINT NOT NULL,
    reason SMALLINT NOT NULL,
    PRIMARY KEY (scope, statement, id),
    FOREIGN KEY(scope, statement) REFERENCES graph_statements (scope, id)
);

CREATE TABLE graph_denials (
    scope VARCHAR NOT NULL,
    statement VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    attested_at BIGINT NOT NULL,
    episode VARCHAR,
    passage VARCHAR,
    quote TEXT NOT NULL,
    confidence DOUBLE NOT NULL,
    recorded_at BIGINT NOT NULL,
    start BIGINT,
    until BIGINT,
    PRIMARY KEY (scope, statement, id),
    FOREIGN KEY(scope, statement) REFERENCES graph_statements (scope, id)
);

CREATE TABLE graph_verdicts (
    scope VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    "left" VARCHAR NOT NULL,
    "right" VARCHAR NOT NULL,
    kind SMALLINT NOT NULL,
    judge SMALLINT NOT NULL,
    attested_at BIGINT NOT NULL,
    why TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt_version TEXT NOT NULL,
    episode VARCHAR,
    recorded_at BIGINT NOT NULL,
    PRIMARY KEY (scope, id),
    FOREIGN KEY(scope, "left") REFERENCES graph_statements (scope, id),
    FOREIGN KEY(scope, "right") REFERENCES graph_statements (scope, id)
);

CREATE TABLE graph_spans (
    scope VARCHAR NOT NULL,
    statement VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    valid_at BIGINT NOT NULL,
    invalid_at BIGINT NOT NULL,
    known_from BIGINT NOT NULL,
    known_to BIGINT NOT NULL,
    started_by VARCHAR NOT NULL,
    ended_by VARCHAR,
    contested BOOLEAN NOT NULL,
    PRIMARY KEY (scope, statement, id),
    FOREIGN KEY(scope, statement) REFERENCES graph_statements (scope, id)
);

CREATE INDEX graph_aliases_entity ON graph_aliases (scope, entity);

CREATE INDEX graph_statements_aspect ON graph_statements (scope, aspect, created_at, id);

CREATE INDEX graph_statements_slot ON graph_statements (scope, subject, predicate, created_at, id);

CREATE INDEX graph_statements_object ON graph_statements (scope, object, created_at, id);

CREATE INDEX graph_statements_created ON graph_statements (scope, created_at, id);

CREATE INDEX graph_statements_between ON graph_statements (scope, subject, object);

CREATE INDEX graph_statements_subject ON graph_statements (scope, subject, created_at, id);

CREATE INDEX graph_statements_predicate ON graph_statements (scope, predicate, created_at, id);

CREATE INDEX graph_claims_episode ON graph_claims (scope, episode);

CREATE INDEX graph_ends_episode ON graph_ends (scope, episode);

CREATE INDEX graph_denials_episode ON graph_denials (scope, episode);

CREATE INDEX graph_verdicts_left ON graph_verdicts (scope, "left");

CREATE INDEX graph_verdicts_episode ON graph_verdicts (scope, episode);

CREATE INDEX graph_verdicts_right ON graph_verdicts (scope, "right");

CREATE INDEX graph_spans_ended_by ON graph_spans (scope, ended_by);
