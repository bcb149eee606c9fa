"""Relevance: whether a text is plainly small talk, so that nobody needs to be asked about it. Doubt is no.

Stricter than the engine's own rules, which see what else was said: whatever may answer a question, agree,
name a day, a person or a thing goes on. English and Chinese.
"""

import re

from services.domain.recalled import recalled_spans
from services.llm.offline.sentences import Talk, is_small_word, split

MAX_CHARACTERS = 120
"""Of a text; a longer one says more than thanks."""

_ANSWERING = """
yes no yeah yea yep yup nope nah right sure will done agree agreed absolutely definitely totally exactly
indeed course true i i'm im am my us me we our is was be it it's its that thats that's this there here sounds
perfect fine them they he she tomorrow today tonight weekend day soon later have take rest time home go start
begin continue carry let let's lets on back now then but wait hold stop makes sense know mean see seems look
looks looking forward hear help helping helped for to no-one ahead your your's mate
"""
_SAYS_SOMETHING = frozenset(_ANSWERING.split())
"""Small words that answer, agree, or speak of somebody or something beside others like them."""
_ANSWER_ZH = re.compile(
    r"可以|没问题|是|对|没错|当然|不|没有|行|说得|道理|继续|开始|等|想|生日|新年|快乐|恭喜|祝|明天|麻烦|知道|明白"
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_HAN = re.compile(r"[\u3400-\u9fff]")
_FOREIGN = re.compile(r"[\d@#$%&/\\<>{}\[\]=+*_`|]|[^\W\d_a-zA-Z\u3400-\u9fff'’]")
"""Numbers, code, and letters of other scripts: more than greetings."""


def is_small_talk(text: str) -> bool:
    """True for greetings, thanks and fillers alone. Never true of text that was recalled, or of nothing."""
    if not text.strip() or len(text) > MAX_CHARACTERS or _FOREIGN.search(text) or recalled_spans(text):
        return False
    sentences = split(text)
    return bool(sentences) and all(one.talk is Talk.SMALL and _says_nothing(one.text) for one in sentences)


def _says_nothing(sentence: str) -> bool:
    if _HAN.search(sentence):
        return not _ANSWER_ZH.search(sentence)
    words = [word.lower().replace("’", "'") for word in _WORD.findall(sentence)]
    return all(is_small_word(word) and word not in _SAYS_SOMETHING for word in words)
