"""Normalise: raw turns into a third-person narrative, or the word that there is nothing to remember."""

import re
from collections.abc import Sequence

from services.domain.facts import NothingReason
from services.llm import tasks
from services.llm.port import Tier
from services.llm.prompts import parts
from services.llm.prompts.render import Prompt, Section, setting_sections, turns_section
from services.llm.replies import MAX_REPLY_CHARACTERS, Reading, without_thoughts

VERSION = "1"

NOTHING = "NOTHING_TO_REMEMBER"
REASONS = (
    NothingReason.SMALL_TALK,
    NothingReason.NO_DURABLE_FACT,
    NothingReason.DUPLICATE_CONTENT,
    NothingReason.RECALLED_TEXT,
)
"""Those a model may give; that a document is unchanged is found without one."""

REASONS_TOLD = """\
SMALL_TALK: greetings, thanks, filler. NO_DURABLE_FACT: talk that no one will need later. DUPLICATE_CONTENT:
all of it is in <recent_texts>. RECALLED_TEXT: all of it was recalled from this memory.
"""

PREFIX = (
    f"""
You rewrite raw text as a short third-person narrative, so that it can be understood without its context and
remembered for years.

{parts.DATA_IS_DATA}
{parts.OWNERSHIP}
{parts.ASSISTANT}
How to write:
- Keep each durable statement: who people and things are, what they do, use, own, decide, plan, believe, want,
  like; where; with whom; since when, until when; what stopped; what was denied or corrected. Add nothing.
- Replace pronouns and "I" with names. The user is called as `user` of <setting> says. Use the spelling of
  <known_entities> for the same thing, and keep things apart that only share a name.
- Make relative dates absolute, from the turn's `said_at`, else `reference_time`, in `time_zone`: "last week"
  is the ISO week before it, "last January" the most recent January that is over or under way, "January last
  year" that of the year before. Keep the precision of the words: a month stays a month. Don't invent dates.
- Keep the tense: what was so and stopped, what is so, what is only planned, wished, doubted or denied.
- Keep instructions of the user to an assistant ("always run the tests first") as what the user wants, as
  whole sentences.
- Keep the language of the source. Keep names, numbers, versions and code as they stand.
- Leave out greetings, thanks, filler, the mechanics of the session, and secrets: passwords, keys, tokens.
- <recent_texts>, <similar_texts> and <known_facts> are there to resolve references; don't retell them. Text
  in an assistant's turn that recites <known_facts> was recalled from this very memory: leave it out.

How to answer: the narrative inside <output>...</output>. When nothing durable is said, answer exactly one of
"""
    + "\n".join(f"<output>{NOTHING} {reason.value}</output>" for reason in REASONS)
    + "\n"
    + REASONS_TOLD
)

_OUTPUT = re.compile(r"<output>(.*)</output>", re.DOTALL | re.IGNORECASE)
_NOTHING = re.compile(rf"{NOTHING}\W*(\w*)\W*")
_ESCAPED = re.compile(r"\\u003([ce])", re.IGNORECASE)


def sections(task: tasks.Normalise) -> Sequence[Section]:
    return [*setting_sections(task.setting), turns_section(task.turns, task.setting)]


def parse(text: str) -> Reading[str]:
    match = _OUTPUT.search(without_thoughts(text[:MAX_REPLY_CHARACTERS]))
    if match is None:
        return Reading(None, ("There is no <output>...</output> in the answer.",))
    body = _ESCAPED.sub(lambda escape: "<" if escape[1] in "cC" else ">", match[1].strip())
    return Reading(body) if body else Reading(None, ("The <output> is empty.",))


def read(reply: str, task: tasks.Normalise) -> Reading[tasks.Normalised]:
    if nothing := _NOTHING.fullmatch(reply):
        reasons = {reason.value: reason for reason in REASONS}
        if nothing[1].upper() in reasons:
            return Reading(tasks.Normalised(nothing=reasons[nothing[1].upper()]))
        return Reading(None, (f"After {NOTHING} stands one of {', '.join(reasons)}.",))
    if NOTHING in reply:
        return Reading(None, (f"{NOTHING} stands alone with its reason, or a narrative does; not both.",))
    return Reading(tasks.Normalised(narrative=reply))


NORMALISE: Prompt[tasks.Normalise, str, tasks.Normalised] = Prompt(
    name="normalise",
    version=VERSION,
    tier=Tier.MEDIUM,
    prefix=PREFIX,
    schema=None,
    sections=sections,
    parse=parse,
    read=read,
)
