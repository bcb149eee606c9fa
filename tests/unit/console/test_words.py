"""The page's words: every value that an answer may hold has one, in both languages."""

import re

import pytest

from palimpsest.v1 import credits_pb2, entity_pb2, episode_pb2, job_pb2, recall_pb2, statement_pb2
from tests.machine import ROOT

SHOWN = (
    credits_pb2.LedgerAccount,
    credits_pb2.LedgerEntryKind,
    entity_pb2.Cardinality,
    entity_pb2.EntityType,
    episode_pb2.ChunkStage,
    job_pb2.JobKind,
    job_pb2.JobState,
    recall_pb2.RecallIntent,
    recall_pb2.RecallLeg,
    recall_pb2.RecallTarget,
    statement_pb2.GraphAspect,
    statement_pb2.VerdictKind,
)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_value_has_a_word(language: str) -> None:
    source = (ROOT / "console" / "src" / f"{language}.ts").read_text(encoding="utf-8")
    words = set(re.findall(r"^  ([A-Z][A-Z_]+): ", source, re.MULTILINE))
    descriptors = [enum.DESCRIPTOR for enum in SHOWN]
    values = {value.name for one in descriptors for value in one.values if value.number}
    assert values <= words, values - words
