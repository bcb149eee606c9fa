"""Ids: telling an id of ours from a name that a user chose."""

import re

_OURS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def is_our_id(text: str) -> bool:
    """True for a UUIDv5 as services/domain/ids.py derives them."""
    return _OURS.fullmatch(text) is not None
