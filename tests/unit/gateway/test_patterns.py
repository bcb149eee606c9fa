"""Patterns of one's own: what they black out, and which are refused before they can stop a gateway."""

import pytest

from gateway.patterns import BadPattern, Patterns, TookTooLong, check
from gateway.policy import redacted
from gateway.redaction import CARD, OWN, Redactor
from palimpsest.v1 import entity_pb2, memory_ingest_pb2
from palimpsest.v1.graph_pb2 import RedactionSettings
from services.domain.redacted import marks_in

FINE = [
    r"EMP-\d{6}",
    r"(?i)project (?:orca|heron)",
    r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3}\b",
    r"(?:\d{1,3}\.){3}\d{1,3}",
    r"[\w.+-]{1,64}@[\w.-]{1,80}",
    r"^ticket #\d+$",
    r"(?P<name>Zoë|卓)",
    r"a\{2\}[^\]a-c]?",
]
BAD = {
    "(": "no regular expression",
    "a)": "no regular expression",
    "[a": "no regular expression",
    "(a+)+b": "repeats what repeats",
    "(a|b)*c": "repeats what repeats",
    "(?:a{1,9}){11}": "repeats what repeats",
    "((a?)b)*": "repeats what repeats",
    "a++": "repeats what repeats",
    "a{2}{3}": "repeats what repeats",
    r"(a)\1": "reference",
    r"\pL": "reference",
    "(?=a)b": "looks ahead",
    "(?<!a)b": "looks ahead",
    "(?>a)": "looks ahead",
    "(?R)": "looks ahead",
    "[a[b]]": "class in a class",
    "a{1001}": "counts beyond",
    "(?:foo){e<=1}": "brace that counts nothing",
    "a*": "empty",
    "x?|y": "empty",
    "a[ab]*[ab]*[ab]*[=!]": "takes too long",
}


@pytest.mark.parametrize("pattern", FINE)
def test_plain_patterns_are_taken(pattern: str) -> None:
    assert list(check([pattern])) == []


@pytest.mark.parametrize("pattern", BAD, ids=range(len(BAD)))
def test_what_may_not_end_or_finds_nothing_is_refused_without_being_told_again(pattern: str) -> None:
    [(number, why)] = check([pattern])
    assert (number, BAD[pattern] in why) == (0, True), why
    assert len(pattern) < 5 or pattern not in why


def test_each_is_named_by_its_number() -> None:
    assert [number for number, _ in check(["a", "(", "b", "*"])] == [1, 3]


def test_all_that_is_found_is_blacked_out_between_other_marks() -> None:
    redactor = Redactor(RedactionSettings(card_numbers=True, patterns=[r"EMP-\d+", "[a-z]{6}"]))
    text = "EMP-12 pays with 4111 1111 1111 1111, secret of EMP-7."
    assert redactor.text(text) == f"{OWN} pays with {CARD}, {OWN} of {OWN}."
    assert marks_in(redactor.text(text)) == {"pattern": 3, "card_number": 1}
    assert redactor.text(redactor.text(text)) == redactor.text(text)


def test_numbers_given_as_such_are_read_by_their_digits() -> None:
    redactor = Redactor(RedactionSettings(patterns=[r"\d{6}"]))
    asked = memory_ingest_pb2.AssertTriplesRequest(
        graph_id="123456",
        claims=[
            memory_ingest_pb2.ClaimInput(
                object=entity_pb2.ObjectRef(literal=entity_pb2.Literal(number_value=number))
            )
            for number in (123456.0, 1234567.0, 12.5)
        ],
    )
    literals = [claim.object.literal for claim in redacted(asked, redactor).claims]
    assert [one.string_value or one.number_value for one in literals] == [OWN, 1234567.0, 12.5]
    assert redacted(asked, redactor).graph_id == "123456"


def test_a_text_on_which_a_pattern_is_slow_is_given_up() -> None:
    # Of a kind that no trial meets: its letters are in none.
    slow = Patterns([r"q[qz]*[qz]*[qz]*[qz]*!"])
    with pytest.raises(TookTooLong):
        slow.marked("q" * 20_000, OWN, seconds=0.05)
    with pytest.raises(BadPattern):
        Patterns(["("])
