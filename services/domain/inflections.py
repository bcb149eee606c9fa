"""Inflections: other forms of a predicate whose first word is an English verb; its preposition stays.

Time is in a statement's spans, not in its predicate: "worked at", "is working at" and "works at" are one.
What says that it is over ("used to work at", "formerly works at") stays apart, lest it be read as going on.
So does the passive: "managed_by" is not "manages".
"""

_IRREGULAR = {
    "writes": "wrote", "leads": "led", "teaches": "taught", "knows": "knew", "speaks": "spoke",
    "makes": "made", "runs": "ran", "meets": "met", "builds": "built", "drives": "drove", "keeps": "kept",
    "sells": "sold", "buys": "bought", "wins": "won", "sings": "sang", "gives": "gave", "takes": "took",
    "goes": "went", "sits": "sat", "holds": "held",
}  # fmt: skip
_NO_VERBS = frozenset({"is", "has", "was", "status", "address", "headquarters", "does"})
_VOWELS = frozenset("aeiou")


def inflections(name: str) -> frozenset[str]:
    """The other forms of a name that opens with a verb in the third person ("works_at"), else nothing.

    Base form, past, and the progressive with its auxiliaries.
    """
    verb, _, rest = name.partition("_")
    base = _base(verb)
    if base is None or "by" in rest.split("_"):
        return frozenset()
    past, doing = _IRREGULAR.get(verb) or _past(base), _doing(base)
    heads = {base, past, doing, f"is_{doing}", f"has_been_{doing}", f"currently_{verb}"}
    return frozenset({f"{head}_{rest}" if rest else head for head in heads} - {name})


def _base(verb: str) -> str | None:
    if not verb.isascii() or verb in _NO_VERBS or len(verb) < 4 or verb[-1] != "s" or verb[-2] in "su":
        return None
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    if verb.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return verb[:-2]
    return verb[:-1]


def _past(base: str) -> str:
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2] not in _VOWELS:
        return f"{base[:-1]}ied"
    return f"{_doubled(base)}ed"


def _doing(base: str) -> str:
    if base.endswith("ie"):
        return f"{base[:-2]}ying"
    if base.endswith("e") and not base.endswith(("ee", "oe", "ye")):
        return f"{base[:-1]}ing"
    return f"{_doubled(base)}ing"


def _doubled(base: str) -> str:
    """The base with its last consonant doubled where a short single syllable ends in one: "plan"."""
    vowels = sum(letter in _VOWELS for letter in base)
    short = vowels == 1 and len(base) > 2 and base[-2] in _VOWELS and base[-1] not in "aeiouwxy"
    return base + base[-1] if short else base
