"""Deciding: what is written into the log of decisions, in the revision that it is about.

One decision for each verdict, merge, end, denial, deletion and call; never one for each claim.
"""

from dataclasses import dataclass
from enum import StrEnum

from services.domain.ids import derive_id
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.llm.port import Receipt
from services.resolver.change import Draft
from services.stores.memory.port import Decision


class Action(StrEnum):
    """What is decided; a later version may add to these."""

    ASSERT = "assert_triples"
    END = "end_statement"
    DENY = "deny_statement"
    RESTORE = "restore_statement"
    JUDGE = "judge_pair"
    END_VOICE = "end_voice_aspect"
    RESTORE_VOICE = "restore_voice_aspect"
    JUDGE_VOICE = "judge_voice_pair"
    DECLARE = "declare_predicate"
    MERGE_PREDICATES = "merge_predicates"
    KEEP_PREDICATES_APART = "keep_predicates_apart"
    ARCHIVE = "archive"
    RESTORE_ARCHIVED = "restore_archived"
    READ_ANEW = "read_anew"
    UNDO_READING = "undo_reading"


@dataclass(frozen=True, slots=True)
class By:
    """Who decides, and why. `why` is a word of ours or the caller's own, never a model's; see Decision."""

    actor: str
    why: str = ""
    model: str = ""
    prompt_version: str = ""
    request: str = ""


RULE = By("rule")
SOURCE_REMOVED = By("rule", "source removed")
TEXT = By("model")
"""What a model drew from a text; which one, the job's receipts tell."""


def by_model(receipt: Receipt, why: str = "") -> By:
    """A verdict of the engine that a receipt names."""
    return By("model", why, receipt.model or receipt.engine, receipt.prompt_version)


def decide(
    scope: Scope, draft: Draft, at: Instant, action: Action, target: str, by: By, other: str = ""
) -> None:
    """Notes a decision in the draft. The same one noted again is one."""
    parts = (action, target, draft.revision, *([other] if other else ()))
    made = derive_id(scope, "decision", *parts)
    if any(known.id == made for known in draft.decisions):
        return
    about = (made, draft.revision, at, action, target, by.actor, by.why, by.model, by.prompt_version)
    draft.decisions.append(Decision(*about, other, by.request))


def decide_said(scope: Scope, draft: Draft, at: Instant, by: By) -> None:
    """Notes the ends and denials of a draft: of which statement, by which record."""
    for end in draft.ends.values():
        decide(scope, draft, at, Action.END, end.statement, by, end.id)
    for denial in draft.denials.values():
        decide(scope, draft, at, Action.DENY, denial.statement, by, denial.id)
