"""Entities as the public API shows them whole."""

from gateway.convert.statements import entity_out
from gateway.convert.times import stamp
from palimpsest.internal.v1 import recall_lists_pb2 as internal
from palimpsest.v1 import entity_pb2


def card_out(card: internal.EntityCard) -> entity_pb2.Entity:
    """An entity with its names, what it reads as, what reads as it, and how many statements name it."""
    shown = entity_out(card.entity)
    shown.created_at.FromMicroseconds(card.created_at_clock)
    shown.created_revision.CopyFrom(stamp(card.created_at, card.created_at_clock))
    shown.merged_into = card.merged_into
    shown.merged_entity_ids.extend(card.merged_ids)
    shown.statement_count = card.statements
    return shown
