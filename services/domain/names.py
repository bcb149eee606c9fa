"""Names: when two names are one entity's, and when two literals are one value."""

import re
import unicodedata
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

from services.domain.graph import EntityType, Literal, LiteralKind

_LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u02b9\u00b4\u0060\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u300c\u300d\u300e\u300f\uff02", '"'),
        **dict.fromkeys("\u2044\u2215\uff0f", "/"),
        **dict.fromkeys("\u00b7\u2022\u2219\u22c5\u30fb\uff65", "\u00b7"),
        **dict.fromkeys("\u3002\uff61", "."),
        **dict.fromkeys("\u3001\uff64", ","),
        # Names are also written with these for spaces.
        **dict.fromkeys("_\u200b\ufeff\u2060", " "),
    }
)
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_PLAIN_DIGITS = 30
"""Numbers that would need more digits than this are kept in scientific form."""
_TRUTHS = {
    **dict.fromkeys(("true", "yes", "1", "是", "真"), "true"),
    **dict.fromkeys(("false", "no", "0", "否", "假"), "false"),
}


def name_key(name: str) -> str:
    """The form in which names are compared: NFKC, case-folded, look-alikes as one, spaces collapsed.

    Nothing is removed: "C++" is not "C". A key is its own key.
    """
    # Look-alikes go first: NFKC would take some of them apart into a space and an accent.
    folded = unicodedata.normalize("NFKC", name.translate(_LOOK_ALIKES)).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).translate(_LOOK_ALIKES).split())


def compatible(one: EntityType, other: EntityType) -> bool:
    """Whether entities of these types may be one. UNKNOWN fits all but PREDICATE; doubt keeps both."""
    if EntityType.PREDICATE in (one, other):
        return one is other
    return one is other or EntityType.UNKNOWN in (one, other)


def literal(kind: LiteralKind, text: str) -> Literal:
    """The literal of a text, one text for one value. Raises ValueError when the text has no such value.

    Numbers lose what says nothing ("42.0" is "42"), times are ISO 8601 in UTC (a date stays a date),
    truths are "true" and "false", strings keep their case and lose doubled spaces.
    """
    plain = " ".join(unicodedata.normalize("NFKC", text).split())
    match kind:
        case LiteralKind.STRING:
            return Literal(kind, plain)
        case LiteralKind.NUMBER:
            return Literal(kind, _number(plain))
        case LiteralKind.BOOLEAN:
            if plain.casefold() not in _TRUTHS:
                raise ValueError("not a truth value")
            return Literal(kind, _TRUTHS[plain.casefold()])
        case LiteralKind.TIME:
            return Literal(kind, _time(plain))


def _number(text: str) -> str:
    text = text.replace("\u2212", "-")
    try:
        value = Decimal(text.replace(",", "") if _GROUPED.fullmatch(text) else text)
    except InvalidOperation as error:
        raise ValueError("not a number") from error
    if not value.is_finite():
        raise ValueError("not a finite number")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "finite"
    significant = "".join(map(str, digits)).lstrip("0")
    shorter = significant.rstrip("0")
    exponent += len(significant) - len(shorter)
    if not shorter:
        return "0"
    prefix = "-" if sign else ""
    if len(shorter) + abs(exponent) > _PLAIN_DIGITS:
        return f"{prefix}{shorter}E{exponent}"
    if exponent >= 0:
        return prefix + shorter + "0" * exponent
    padded = shorter.rjust(1 - exponent, "0")
    return f"{prefix}{padded[:exponent]}.{padded[exponent:]}"


def _time(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        moment = datetime.fromisoformat(text)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError as error:
        raise ValueError("not within the years 1 to 9999") from error
