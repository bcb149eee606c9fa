"""What follows ingests, in SQL: labels, summaries of sessions, the persona."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Select, and_, bindparam, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import Revision, SessionId
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.domain.summaries import Cited, Label, Persona, PersonaSection, SessionSummary, label_key
from services.stores.chunks import in_chunks
from services.stores.errors import UnstorableText, WriteConflict
from services.stores.memory.sql import schema
from services.stores.memory.sql.fences import pass_fence
from services.stores.memory.sql.values import digest
from services.stores.memory.summaries import LabelVector, without
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.keyset import page_of
from services.stores.sql.rows import Key, check_storable, insert_new, insert_or_update
from services.stores.storable import is_storable

_T = schema.summaries
_SESSIONS, _CITATIONS, _LABELS = _T.sessions.c, _T.citations.c, _T.labels.c
_CARRIED, _PERSONAS, _FOLLOWED = _T.session_labels.c, _T.personas.c, _T.followed.c
_SENTENCES: TypeAdapter[tuple[Cited, ...]] = TypeAdapter(tuple[Cited, ...])
_SECTIONS: TypeAdapter[tuple[PersonaSection, ...]] = TypeAdapter(tuple[PersonaSection, ...])
_ANEW = {"title": "", "made_from": ""}
"""Of a session that lost a sentence: what is made anew."""


class SqlSummaryStore:
    """SummaryStore over tables of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def sessions(self, scope: Scope, sessions: Sequence[SessionId]) -> Sequence[SessionSummary]:
        keys = [str(digest(session)) for session in sessions]
        found: dict[str, SessionSummary] = {}
        async with self._database.read(scope) as connection:
            for chunk in in_chunks(keys):
                query = select(_T.sessions).where(_of(_SESSIONS, scope), _SESSIONS.session_key.in_(chunk))
                rows = [dict(row) for row in (await connection.execute(query)).mappings()]
                found |= await _summaries(connection, scope, rows)
        return [found[key] for key in dict.fromkeys(keys) if key in found]

    async def scan_sessions(self, scope: Scope, page: Page) -> Listed[SessionSummary]:
        query = select(_T.sessions).where(_of(_SESSIONS, scope))
        async with self._database.read(scope) as connection:
            rows = await page_of(connection, query, [_SESSIONS.session_key], page)
            found = await _summaries(connection, scope, rows.items)
        return Listed(list(found.values()), rows.after)

    async def citing(self, scope: Scope, ids: Collection[str]) -> Sequence[SessionId]:
        async with self._database.read(scope) as connection:
            return sorted(await _names(connection, scope, await _citing(connection, scope, ids)))

    async def save_session(
        self,
        scope: Scope,
        summary: SessionSummary,
        labels: Sequence[LabelVector] = (),
        generation: int | None = None,
    ) -> bool:
        row = _session_row(scope, summary)
        key = row["session_key"]
        async with self._database.write(scope) as connection:
            await pass_fence(connection, scope, generation)
            await _alone(connection, scope, summary.revision)
            await insert_new(connection, _T.sessions, [row | {"revision": -1}])
            mine = and_(_of(_SESSIONS, scope), _SESSIONS.session_key == key)
            written = await connection.execute(
                update(_T.sessions).where(mine, _SESSIONS.revision <= summary.revision).values(row)
            )
            if not written.rowcount:
                return False
            await _cite(connection, scope, key, summary.sentences)
            await insert_new(connection, _T.labels, [_label_row(scope, label) for label in labels])
            await _label(connection, scope, key, summary.labels)
        return True

    async def drop_session(self, scope: Scope, session: SessionId, revision: Revision) -> None:
        key = digest(session)
        mine = and_(_of(_SESSIONS, scope), _SESSIONS.session_key == key, _SESSIONS.revision <= revision)
        async with self._database.write(scope) as connection:
            await _alone(connection, scope)
            gone = await connection.execute(delete(_T.sessions).where(mine))
            if gone.rowcount:
                await _cite(connection, scope, str(key), ())
                await _label(connection, scope, str(key), ())

    async def label_vectors(self, scope: Scope) -> Sequence[LabelVector]:
        query = select(_T.labels).where(_of(_LABELS, scope))
        async with self._database.read(scope) as connection:
            rows = (await connection.execute(query)).all()
        found = [LabelVector(row.name, bytes(row.vector), row.embedder) for row in rows]
        return sorted(found, key=lambda label: label_key(label.name))

    async def labels(self, scope: Scope) -> Sequence[Label]:
        async with self._database.read(scope) as connection:
            rows = await connection.execute(_labels(), {"in_scope": scope.key})
            found = [Label(str(row.name), int(row.sessions)) for row in rows]
        return sorted(found, key=lambda label: (-label.sessions, label_key(label.name)))

    async def labelled(self, scope: Scope, names: Collection[str]) -> Sequence[SessionId]:
        wanted = [str(digest(label_key(name))) for name in names]
        async with self._database.read(scope) as connection:
            keys: set[str] = set()
            for chunk in in_chunks(wanted):
                query = select(_CARRIED.session_key).where(_of(_CARRIED, scope), _CARRIED.label.in_(chunk))
                keys |= set((await connection.execute(query)).scalars())
            return sorted(await _names(connection, scope, keys))

    async def persona(self, scope: Scope) -> Persona | None:
        async with self._database.read(scope) as connection:
            return await _persona(connection, scope)

    async def save_persona(
        self, scope: Scope, persona: Persona, after: int, generation: int | None = None
    ) -> None:
        row = _persona_row(scope, persona)
        async with self._database.write(scope) as connection:
            await pass_fence(connection, scope, generation)
            await _alone(connection, scope, persona.revision if persona.made_from else None)
            if after:
                mine = and_(_of(_PERSONAS, scope), _PERSONAS.version == after)
                written = await connection.execute(update(_T.personas).where(mine).values(row))
                if not written.rowcount:
                    raise WriteConflict("the persona is of another version")
                return
            if await _persona(connection, scope) is not None:
                raise WriteConflict("there is a persona already")
            await connection.execute(insert(_T.personas).values(row))

    async def followed(self, scope: Scope) -> Revision:
        query = select(_FOLLOWED.revision).where(_of(_FOLLOWED, scope))
        async with self._database.read(scope) as connection:
            return Revision((await connection.execute(query)).scalar_one_or_none() or 0)

    async def follow(self, scope: Scope, revision: Revision, generation: int | None = None) -> None:
        row = {"scope": scope.key, "revision": revision, "forgotten": 0}
        async with self._database.write(scope) as connection:
            await pass_fence(connection, scope, generation)
            later = _FOLLOWED.revision < revision
            await insert_or_update(connection, _T.followed, [row], ["revision"], later)

    async def start_over(self, scope: Scope) -> None:
        async with self._database.write(scope) as connection:
            await connection.execute(update(_T.followed).where(_of(_FOLLOWED, scope)).values(revision=0))

    async def forget(self, scope: Scope, revision: Revision, ids: Collection[str]) -> None:
        if not ids:
            return
        async with self._database.write(scope) as connection:
            await _alone(connection, scope)
            mine = and_(_of(_FOLLOWED, scope), _FOLLOWED.forgotten < revision)
            await connection.execute(update(_T.followed).where(mine).values(forgotten=revision))
            for keys in in_chunks(await _citing(connection, scope, ids)):
                query = select(_T.sessions).where(_of(_SESSIONS, scope), _SESSIONS.session_key.in_(keys))
                rows = (await connection.execute(query.with_for_update())).mappings()
                for row in [dict(row) for row in rows]:
                    await _forget_in(connection, scope, row, ids)
            persona = await _persona(connection, scope)
            if persona is not None:
                sections = [replace(one, sentences=without(one.sentences, ids)) for one in persona.sections]
                kept = tuple(one for one in sections if one.protected or one.sentences)
                if kept != persona.sections:
                    left = replace(persona, sections=kept, made_from="", version=persona.version + 1)
                    await connection.execute(
                        update(_T.personas).where(_of(_PERSONAS, scope)).values(_persona_row(scope, left))
                    )


@cache
def _labels() -> Select[Any]:
    """The labels of a graph with how many sessions carry each. Made once: questions ask for it."""
    here = _CARRIED.scope == bindparam("in_scope", type_=Key)
    carried = (
        select(_CARRIED.label, func.count().label("sessions")).where(here).group_by(_CARRIED.label).subquery()
    )
    named = _T.labels.join(carried, _LABELS.key == carried.c.label)
    mine = _LABELS.scope == bindparam("in_scope", type_=Key)
    return select(_LABELS.name, carried.c.sessions).select_from(named).where(mine)


def _of(columns: Any, scope: Scope) -> ColumnElement[bool]:
    mine: ColumnElement[bool] = columns.scope == scope.key
    return mine


async def _alone(connection: AsyncConnection, scope: Scope, read_at: Revision | None = None) -> None:
    """Until the transaction ends nobody else writes here: a label that goes may be another's.

    Raises WriteConflict where text was taken away after the revision that the caller has read.
    """
    await insert_new(connection, _T.followed, [{"scope": scope.key, "revision": 0, "forgotten": 0}])
    query = select(_FOLLOWED.forgotten).where(_of(_FOLLOWED, scope)).with_for_update()
    forgotten = (await connection.execute(query)).scalar_one()
    if read_at is not None and read_at < forgotten:
        raise WriteConflict("text was taken away since")


async def _forget_in(
    connection: AsyncConnection, scope: Scope, row: Mapping[str, Any], ids: Collection[str]
) -> None:
    left = without(_SENTENCES.validate_json(row["sentences"]), ids)
    mine = and_(_of(_SESSIONS, scope), _SESSIONS.session_key == row["session_key"])
    changed = {"sentences": _SENTENCES.dump_json(left).decode(), **_ANEW}
    await connection.execute(update(_T.sessions).where(mine).values(changed))
    await _cite(connection, scope, row["session_key"], left)
    await _label(connection, scope, row["session_key"], ())


async def _citing(connection: AsyncConnection, scope: Scope, ids: Collection[str]) -> set[str]:
    keys: set[str] = set()
    for chunk in in_chunks(id for id in sorted(ids) if is_storable(id)):
        query = select(_CITATIONS.session_key).where(_of(_CITATIONS, scope), _CITATIONS.cited.in_(chunk))
        keys |= set((await connection.execute(query)).scalars())
    return keys


async def _names(connection: AsyncConnection, scope: Scope, keys: Collection[str]) -> set[SessionId]:
    found: set[SessionId] = set()
    for chunk in in_chunks(keys):
        query = select(_SESSIONS.session).where(_of(_SESSIONS, scope), _SESSIONS.session_key.in_(chunk))
        found |= {SessionId(name) for name in (await connection.execute(query)).scalars()}
    return found


async def _cite(connection: AsyncConnection, scope: Scope, key: str, sentences: Sequence[Cited]) -> None:
    """The citations of a session are those of these sentences."""
    await connection.execute(
        delete(_T.citations).where(_of(_CITATIONS, scope), _CITATIONS.session_key == key)
    )
    cited = dict.fromkeys(id for sentence in sentences for id in sentence.ids)
    rows = [{"scope": scope.key, "cited": id, "session_key": key} for id in cited]
    await insert_new(connection, _T.citations, rows)


async def _label(connection: AsyncConnection, scope: Scope, key: str, names: Sequence[str]) -> None:
    """The labels of a session are these; those that no session carries any more go."""
    await connection.execute(
        delete(_T.session_labels).where(_of(_CARRIED, scope), _CARRIED.session_key == key)
    )
    rows = [
        {"scope": scope.key, "label": digest(label_key(name)), "session_key": key, "position": position}
        for position, name in enumerate(names)
    ]
    await insert_new(connection, _T.session_labels, rows)
    carried = select(_CARRIED.label).where(_of(_CARRIED, scope))
    await connection.execute(delete(_T.labels).where(_of(_LABELS, scope), _LABELS.key.not_in(carried)))


async def _summaries(
    connection: AsyncConnection, scope: Scope, rows: Sequence[Mapping[str, Any]]
) -> dict[str, SessionSummary]:
    """By the session's key, in the order of the rows."""
    keys = [row["session_key"] for row in rows]
    named: dict[str, list[str]] = {key: [] for key in keys}
    for chunk in in_chunks(keys):
        query = (
            select(_CARRIED.session_key, _LABELS.name)
            .join_from(
                _T.session_labels,
                _T.labels,
                and_(_CARRIED.scope == _LABELS.scope, _CARRIED.label == _LABELS.key),
            )
            .where(_of(_CARRIED, scope), _CARRIED.session_key.in_(chunk))
            .order_by(_CARRIED.session_key, _CARRIED.position)
        )
        for row in await connection.execute(query):
            named[row.session_key].append(row.name)
    return {
        row["session_key"]: SessionSummary(
            session=SessionId(row["session"]),
            title=row["title"],
            labels=tuple(named[row["session_key"]]),
            sentences=_SENTENCES.validate_json(row["sentences"]),
            updated_at=Instant(row["updated_at"]),
            revision=Revision(row["revision"]),
            made_from=row["made_from"],
            model=row["model"],
            prompt_version=row["prompt_version"],
        )
        for row in rows
    }


async def _persona(connection: AsyncConnection, scope: Scope) -> Persona | None:
    query = select(_T.personas).where(_of(_PERSONAS, scope))
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        return None
    return Persona(
        sections=_SECTIONS.validate_json(row.sections),
        version=row.version,
        updated_at=Instant(row.updated_at),
        revision=Revision(row.revision),
        made_from=row.made_from,
        model=row.model,
        prompt_version=row.prompt_version,
    )


def _session_row(scope: Scope, summary: SessionSummary) -> dict[str, Any]:
    return _checked(
        {
            "scope": scope.key,
            "session_key": str(digest(summary.session)),
            "session": summary.session,
            "title": summary.title,
            "sentences": _dumped(_SENTENCES, summary.sentences),
            "updated_at": summary.updated_at,
            "revision": summary.revision,
            "made_from": summary.made_from,
            "model": summary.model,
            "prompt_version": summary.prompt_version,
        }
    )


def _persona_row(scope: Scope, persona: Persona) -> dict[str, Any]:
    return _checked(
        {
            "scope": scope.key,
            "sections": _dumped(_SECTIONS, persona.sections),
            "version": persona.version,
            "updated_at": persona.updated_at,
            "revision": persona.revision,
            "made_from": persona.made_from,
            "model": persona.model,
            "prompt_version": persona.prompt_version,
        }
    )


def _label_row(scope: Scope, label: LabelVector) -> dict[str, Any]:
    return {
        "scope": scope.key,
        "key": digest(label_key(label.name)),
        "name": label.name,
        "vector": label.vector,
        "embedder": label.embedder,
    }


def _dumped(adapter: TypeAdapter[Any], value: Any) -> str:
    """As JSON. A lone surrogate, or NUL, which JSON would escape, is refused like in every other text."""
    try:
        text = adapter.dump_json(value).decode()
    except ValueError as error:
        raise UnstorableText("a sentence holds a lone surrogate") from error
    if "\\u0000" in text:
        raise UnstorableText("a sentence holds NUL")
    return text


def _checked(row: dict[str, Any]) -> dict[str, Any]:
    check_storable([row])
    return row
