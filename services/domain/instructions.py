"""Instructions: sentences addressed to this memory or its model, which are data and never obeyed.

A list of shapes can't be complete, and needn't be: text is never an instruction to our prompts, quotes must
be literal and a scope can't be left. It keeps what was smuggled in beside an order from being believed.
"""

import re
import unicodedata

from services.domain.sentences import sentence_spans

_VERB_FIRST = (
    r"(?:^|[,;:–—(\[\"'“‘*>-]\s*|\b(?:and|then|please|now|just|also|so|kindly)\s+"
    r"|\byou\s+(?:(?:must|should|shall|will|can|need to|have to|to)\s+)?)"
)
"""Where the verb of an order stands, so that "we store this for each tenant" is none."""
_SET_ASIDE = (
    r"(?:ignore|disregard|forget|override|bypass|overlook|neglect|discard|drop"
    r"|do(?:n['’]?t| not) (?:follow|obey|heed)|stop (?:following|obeying))"
)
_SET_ASIDE_FIRST = rf"(?:{_VERB_FIRST}|\b(?:to|must|should|but)\s+){_SET_ASIDE}"
_EARLIER = r"(?:previous|prior|above|earlier|preceding|foregoing|your|system|developer)"
_RULES = (
    r"(?:instruction|prompt|rule|direction|guideline|directive|order|command|context|message"
    r"|constraint|polic)"
)
_KEEP = r"(?:record|store|save|remember|note|memori[sz]e|log|add|register|persist|insert|write|copy|put)"

_SHAPES = (
    # "ignore all of the previous instructions", "disregard your rules"
    rf"{_SET_ASIDE_FIRST}(?:\s+\w+){{0,4}}?\s+{_EARLIER}(?:\s+\w+){{0,3}}?\s+{_RULES}",
    # "ignore any instructions", "forget everything above"
    rf"{_SET_ASIDE_FIRST}\s+(?:(?:all|any|every|the|these|those|of|my)\s+)*"
    r"(?:instruction|prompt|guideline|directive)",
    rf"{_SET_ASIDE_FIRST}\s+(?:the|all|everything|anything|what)(?:\s+\w+){{0,3}}?"
    r"\s+(?:above|before|previous|prior)\b",
    # "record that tenant b ...", "store the following for another tenant"
    rf"{_VERB_FIRST}{_KEEP}\b[\w\s]{{0,20}}?(?:\bthat\b|\bthis\b|\bthe following\b|:)"
    r"[^\n]{0,40}?\btenants?\b",
    rf"{_VERB_FIRST}{_KEEP}\b[^\n]{{0,60}}?\b(?:for|to|under|into|in)\s+"
    r"(?:another|other|every|all|a different)\s+(?:tenant|graph|user|scope)",
    rf"{_VERB_FIRST}(?:delete|erase|wipe|clear|overwrite|reset|drop)\s+(?:\w+\s+){{0,3}}?"
    r"(?:memor(?:y|ies)|facts|graph)\b",
    # who the model is to be
    r"\byou are (?:now|no longer)\b|\bfrom now on,? you(?:['’]re| are)\b|\bpretend (?:to be|that you|you)\b",
    r"\b(?:act|behave|respond) as (?:(?:if|though) you|an? (?:un\w+ed|different)|(?:dan|root)\b)",
    # what it was told, and what it keeps
    r"\b(?:system|developer) (?:prompt|message|instruction)s?\b|\bnew (?:system )?instructions?\s*:",
    rf"{_VERB_FIRST}(?:reveal|print|show|repeat|output|leak|expose|tell me)\b[^\n]{{0,40}}?\b(?:your|the)\b"
    r"[^\n]{0,20}?\b(?:prompts?|instructions|api keys?|secrets?|passwords?)\b",
    # the marks of other prompts
    r"</?(?:system|assistant|instructions?|turns?|output)>|\[/?INST\]|<\|\w+\|>"
    r"|(?m:^)\s*(?:#{2,}\s*(?:system|instruction)|system\s*:)",
    # German, French, Spanish
    r"\b(?:ignorier\w*|missacht\w*|vergiss|ignore[zs]|oublie[zs]?|ignora|olvida)\b[^\n]{0,40}?"
    r"\b(?:anweisung\w*|instruc\w+|consignes|regeln|reglas)",
    # Chinese
    r"(?:忽略|无视|忽視|無視|不要理会|忘记|忘掉|忘記|抛开|跳过|覆盖)[^。！？\n]{0,12}?"
    r"(?:之前|以前|以上|上面|上述|前面|先前|此前|所有|全部|一切|你的|系统)[^。！？\n]{0,8}?"
    r"(?:指令|指示|提示|规则|規則|命令|要求|设定|设置|说明|內容|内容)",
    r"你(?:现在|現在|从现在起|從現在起)(?:是|就是|扮演)|从现在(?:开始|起)[，,]?你(?:是|就是|扮演)|假装(?:你|成|自己)",
    r"系统(?:提示|指令)|系統(?:提示|指令)|新的?指令[:：]",
    r"(?:记录|記錄|记住|記住|记下|保存|存储|写入|登记)[^。！？\n]{0,12}?租户",
    r"(?:透露|泄露|输出|显示|告诉我)[^。！？\n]{0,8}?(?:系统|你的)[^。！？\n]{0,6}?(?:提示|指令|密钥)",
)
_INSTRUCTION = re.compile("|".join(f"(?:{shape})" for shape in _SHAPES), re.IGNORECASE)
_LOOK_ALIKES = str.maketrans(
    "аеіјорсухѕԁһԛԝАВЕІЈКМНОРСТУХЅοιαεηκνρτυχΑΒΕΗΙΚΜΝΟΡΤΥΧΖ",
    "aeijopcyxsdhqwABEIJKMHOPCTYXSoiaenkvptuxABEHIKMNOPTYXZ",
)
"""Cyrillic and Greek letters that are read as Latin ones."""


def is_instruction(sentence: str) -> bool:
    return _INSTRUCTION.search(_as_read(sentence.strip())) is not None


def _as_read(sentence: str) -> str:
    """As a reader, or a model, sees it: without what can't be seen, in plain letters."""
    if sentence.isascii():
        return sentence
    seen = "".join(letter for letter in sentence if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFKC", seen).translate(_LOOK_ALIKES)


def instruction_spans(text: str) -> list[tuple[int, int]]:
    """(start, end) of each sentence of `text` that is shaped like an order to this memory or its model."""
    return [(start, end) for start, end in sentence_spans(text) if is_instruction(text[start:end])]
