"""What a database says of its own tables, so that two ways of making them can be compared."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import psycopg
from sqlalchemy import make_url

Catalog = frozenset[tuple[str, ...]]

_POSTGRES = {
    "column": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, l.collname,
               pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum)
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_collation l ON l.oid = a.attcollation
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'""",
    "constraint": """
        SELECT c.relname, o.conname, pg_get_constraintdef(o.oid)
        FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid
        WHERE c.relnamespace = 'public'::regnamespace""",
    "index": "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "trigger": """
        SELECT c.relname, pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE NOT t.tgisinternal""",
    "function": """
        SELECT p.proname, pg_get_functiondef(p.oid) FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace""",
    "policy": "SELECT tablename, policyname, cmd, qual, with_check FROM pg_policies",
    "secured": """
        SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relrowsecurity""",
}


def catalog(url: str, *kinds: str) -> Catalog:
    """Everything of some kinds (all without), as rows of text; version tables are left out."""
    rows = _sqlite(url) if url.startswith("sqlite") else _postgres(url)
    return frozenset(
        row for row in rows if "palimpsest_" not in row[1] and (not kinds or row[0] in {*kinds, "table"})
    )


def _sqlite(url: str) -> Sequence[tuple[str, ...]]:
    with sqlite3.connect(Path(make_url(url).database or "")) as connection:
        found = connection.execute("SELECT type, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        rows = [(str(kind), str(table), " ".join(sql.split())) for kind, table, sql in found]
    connection.close()
    return rows


def _postgres(url: str) -> Sequence[tuple[str, ...]]:
    with psycopg.connect(url) as connection:
        return [
            (kind, *(str(value) for value in row))
            for kind, query in _POSTGRES.items()
            for row in connection.execute(query)
        ]
