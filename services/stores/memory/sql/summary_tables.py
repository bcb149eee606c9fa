"""Tables of what follows ingests. A scope's key opens every primary key and index."""

from sqlalchemy import Column, Index, Integer, LargeBinary, MetaData, Table

from services.stores.sql.rows import Int64, Key, Prose


class SummaryTables:
    """Defined on the metadata of memory's schema. Sessions and labels are named by digests of their names."""

    def __init__(self, metadata: MetaData) -> None:
        self.sessions = Table(
            "memory_sessions",
            metadata,
            Column("scope", Key, primary_key=True),
            Column("session_key", Key, primary_key=True),
            Column("session", Prose, nullable=False),
            Column("title", Prose, nullable=False),
            Column("sentences", Prose, nullable=False, doc="JSON array of sentences with what they cite"),
            Column("updated_at", Int64, nullable=False),
            Column("revision", Int64, nullable=False),
            Column("made_from", Key, nullable=False),
            Column("model", Prose, nullable=False),
            Column("prompt_version", Prose, nullable=False),
        )
        self.citations = Table(
            "memory_citations",
            metadata,
            Column("scope", Key, primary_key=True),
            Column("cited", Key, primary_key=True, doc="a statement or voice aspect"),
            Column("session_key", Key, primary_key=True),
            Index("memory_citations_session", "scope", "session_key"),
        )
        self.labels = Table(
            "memory_labels",
            metadata,
            Column("scope", Key, primary_key=True),
            Column("key", Key, primary_key=True),
            Column("name", Prose, nullable=False),
            Column("vector", LargeBinary, nullable=False),
            Column("embedder", Prose, nullable=False),
        )
        self.session_labels = Table(
            "memory_session_labels",
            metadata,
            Column("scope", Key, primary_key=True),
            Column("label", Key, primary_key=True),
            Column("session_key", Key, primary_key=True),
            Column("position", Integer, nullable=False),
            Index("memory_session_labels_session", "scope", "session_key"),
        )
        self.personas = Table(
            "memory_personas",
            metadata,
            Column("scope", Key, primary_key=True),
            Column("sections", Prose, nullable=False, doc="JSON array of sections"),
            Column("version", Integer, nullable=False),
            Column("updated_at", Int64, nullable=False),
            Column("revision", Int64, nullable=False),
            Column("made_from", Key, nullable=False),
            Column("model", Prose, nullable=False),
            Column("prompt_version", Prose, nullable=False),
        )
        self.followed = Table(
            "memory_followed",
            metadata,
            Column("scope", Key, primary_key=True),
            Column("revision", Int64, nullable=False, doc="up to which everything is written"),
            Column("forgotten", Int64, nullable=False, doc="the latest that took text away"),
        )
