"""Dates in text: what an expression means, said at a reference time in a time zone."""

from services.domain.dates.calendar import Prefer
from services.domain.dates.relations import Relation
from services.domain.dates.resolver import TimeExpression, find, read

__all__ = ["Prefer", "Relation", "TimeExpression", "find", "read"]
