"""Confirmation: whether a user's turn plainly says yes to what an assistant said before. Doubt is no.

English and Chinese, and the bare yes of a few other languages. "Ok" and "thanks" only say that it was heard.
"""

import re

from services.domain.sentences import sentences

_START = re.compile(
    r"(?:(?:oh|well|ah|hm+|so|and|ok(?:ay)?|hey|great|thanks|thank you|please|嗯|啊|哦|好的?)(?!\w)"
    r"[\s,!.;:，。、]*)*",
    re.IGNORECASE,
)
"""Words before the yes that say nothing."""

_YES = re.compile(
    r"(?:yes|yep|yup|yeah|aye|correct|exactly|precisely|indeed|true|agreed|confirmed|affirmative"
    r"|absolutely|definitely|certainly|sure|of course|i (?:agree|confirm)|make it so|works for me"
    r"|right(?!\s+(?:now|away|after|before|hand|side|there|here))"
    r"|let['’]?s (?:do|use|go|take|move|switch)"
    r"|we(?:['’]ll| will| shall)? (?:do|go with|take) (?:that|this|it)"
    r"|sí|oui|ja|da|да|はい|네)(?!\w)"
    r"|对|對|是的|没错|沒錯|可以(?!\w)|同意|正确|正確|当然|當然|没问题|沒問題|确认|確認",
    re.IGNORECASE,
)
"""At the start of a sentence."""

_YES_INSIDE = re.compile(
    r"\b(?:do (?:that|it)|go ahead|sounds (?:good|right)|looks right|go with (?:that|this|it)"
    r"|that(?:['’]s| is) (?:right|correct|true)|you(?:['’]re| are) (?:right|correct))\b"
    r"|就这样|就這樣|就这么(?:办|做|定)|就用(?:它|这个|這個)|照做",
    re.IGNORECASE,
)

_HARMLESS = re.compile(
    r"\b(?:no (?:problem|worries|doubt|objections?)|not bad|why not|can['’]?t wait|nothing else)\b"
    r"|没错|沒錯|没问题|沒問題|不错|不錯|没关系|毫无疑问",
    re.IGNORECASE,
)
"""Denies in form only."""

_NO = re.compile(
    r"\b(?:no|not|nope|nah|never|none|neither|nor|without|cannot|wrong|incorrect|false|instead|rather|but"
    r"|however|although|though|except|unless|until|if|maybe|perhaps|possibly|might|later|doubt|unsure"
    r"|stay|stick|keep|reject|refuse|decline|cancel|stop|wait|nein|non|нет)\b|n['’]t\b"
    r"|不|没|沒|别|別|否|但|可是|除非|如果|也许|也許|可能|再说|再說|等等",
    re.IGNORECASE,
)
"""Denies, hedges, or holds on to what is."""

_TAKES_BACK = re.compile(
    r"(?:no|nope|nah|not|wrong|incorrect|never ?mind|wait|actually|on second thou?ght|scratch that"
    r"|forget (?:it|that)|do not|don['’]?t|cancel|i (?:have )?changed my mind)\b"
    r"|不|别|別|等等|算了|没有|沒有",
    re.IGNORECASE,
)
"""At the start of any sentence."""


def confirms(text: str) -> bool:
    """True when a sentence of `text` says yes without hedging or asking, and none takes it back."""
    confirmed = False
    for sentence in sentences(text):
        plain = _HARMLESS.sub(" ", sentence)
        if _TAKES_BACK.match(plain, _beginning(plain)):
            return False
        asks = sentence.endswith(("?", "？"))
        if not asks and _says_yes(sentence) and not _NO.search(plain):
            confirmed = True
    return confirmed


def _says_yes(sentence: str) -> bool:
    return bool(_YES.match(sentence, _beginning(sentence)) or _YES_INSIDE.search(sentence))


def _beginning(sentence: str) -> int:
    """Past white space and words that say nothing."""
    start = len(sentence) - len(sentence.lstrip())
    match = _START.match(sentence, start)
    return match.end() if match else start
