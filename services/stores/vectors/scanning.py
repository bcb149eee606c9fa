"""Scanning: which part of a scope's ids to read next, on servers that return rows in no order.

Ids begin with hex digits that are as good as random, so a share of the digits' range holds about that share
of the ids. Each part is read whole and sorted here; ids of another kind sort with the last part.
"""

_DIGITS = 8
_END = 16**_DIGITS


def until(after: str, left: int, wanted: int) -> str:
    """A bound such that about `wanted` of the `left` ids that follow `after` are not beyond it.

    "" where the rest is to be read at once.
    """
    if left <= wanted:
        return ""
    head = after.replace("-", "")[:_DIGITS]
    try:
        start = int(head.ljust(_DIGITS, "0"), 16) if head else 0
    except ValueError:
        return ""
    bound = start + max(1, (_END - start) * wanted // left)
    return f"{bound:0{_DIGITS}x}" if bound < _END else ""
