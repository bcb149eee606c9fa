"""Prompts: one module a task. Each has a VERSION, a static prefix, typed input and a checked output."""

from services.llm.prompts.classify import CLASSIFY
from services.llm.prompts.extract_voice import EXTRACT_VOICE
from services.llm.prompts.extract_world import EXTRACT_WORLD
from services.llm.prompts.judge_entities import JUDGE_ENTITIES
from services.llm.prompts.judge_statements import JUDGE_STATEMENTS
from services.llm.prompts.judge_voice import JUDGE_VOICE
from services.llm.prompts.normalise import NORMALISE
from services.llm.prompts.portray import PORTRAY
from services.llm.prompts.reflect import REFLECT
from services.llm.prompts.resolve import RESOLVE
from services.llm.prompts.summarise import SUMMARISE
from services.llm.prompts.understand import UNDERSTAND

ALL = (
    NORMALISE,
    EXTRACT_WORLD,
    EXTRACT_VOICE,
    REFLECT,
    CLASSIFY,
    JUDGE_ENTITIES,
    JUDGE_STATEMENTS,
    JUDGE_VOICE,
    UNDERSTAND,
    RESOLVE,
    SUMMARISE,
    PORTRAY,
)

__all__ = [
    "ALL",
    "CLASSIFY",
    "EXTRACT_VOICE",
    "EXTRACT_WORLD",
    "JUDGE_ENTITIES",
    "JUDGE_STATEMENTS",
    "JUDGE_VOICE",
    "NORMALISE",
    "PORTRAY",
    "REFLECT",
    "RESOLVE",
    "SUMMARISE",
    "UNDERSTAND",
]
