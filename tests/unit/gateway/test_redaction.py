"""Redaction: what is blacked out of a text, what is not, and that no way of writing gets it through."""

import re
import unicodedata

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy import redacted
from gateway.redaction import CARD, SECRET, Redactor
from palimpsest.v1 import entity_pb2, memory_ingest_pb2
from palimpsest.v1.graph_pb2 import RedactionSettings
from services.domain.redacted import marks_in

EVERYTHING = Redactor(RedactionSettings(secrets=True, card_numbers=True))
SCRIPTS = ["0123456789", "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19", "٠١٢٣٤٥٦٧٨٩"]
SEPARATORS = [
    "",
    " ",
    "  ",
    "-",
    "\u2013",
    "\u00a0",
    ".",
    "_",
    "/",
    "\n",
    "\r\n",
    "\t",
    " - ",
    "\u200b",
    "\u00ad",
    ", ",
]
WORDS = [
    "pay with",
    "card:",
    "Ana",
    "(",
    ")",
    "exp. 12/27",
    "no. 7",
    "order 4711",
    "x",
    ";",
    "2024-01-01",
    "€ 30",
]


NETWORKS = [
    *[("4", 13), ("4", 16), ("4", 19), ("51", 16), ("2221", 16), ("2720", 16), ("34", 15), ("37", 15)],
    *[("6011", 16), ("36", 14), ("3528", 16), ("62", 19), ("5018", 13)],
]
"""How numbers of cards begin, and how many digits they have."""


def check_digit(digits: str) -> str:
    doubled = sum(sum(divmod(2 * int(one), 10)) for one in digits[::-2])
    return str(-(doubled + sum(map(int, digits[-2::-2]))) % 10)


@st.composite
def cards(draw: st.DrawFn) -> str:
    start, length = draw(st.sampled_from(NETWORKS))
    rest = draw(st.text("0123456789", min_size=length - len(start) - 1, max_size=length - len(start) - 1))
    return start + rest + check_digit(start + rest)


@st.composite
def spellings(draw: st.DrawFn) -> tuple[str, str]:
    """A card's number, and one way to write it: in groups of any sizes, in digits of one script."""
    number = draw(cards())
    script, between = draw(st.sampled_from(SCRIPTS)), draw(st.sampled_from(SEPARATORS))
    cuts = draw(st.sets(st.integers(1, len(number) - 1), max_size=len(number)))
    written = "".join(between + one if at in cuts else one for at, one in enumerate(number))
    return number, "".join(script[int(one)] if one.isdigit() else one for one in written)


def digits_of(text: str) -> str:
    return "".join(str(unicodedata.digit(one)) for one in text if unicodedata.digit(one, None) is not None)


@given(
    spelled=spellings(),
    before=st.lists(st.sampled_from(WORDS), max_size=3),
    after=st.lists(st.sampled_from(WORDS), max_size=3),
)
def test_a_card_is_seen_however_it_is_written(
    spelled: tuple[str, str], before: list[str], after: list[str]
) -> None:
    number, written = spelled
    text = " ".join([*before, written, *after])
    found = EVERYTHING.text(text)
    assert CARD in found
    assert number not in digits_of(found)
    assert number[-8:] not in digits_of(found), "nor a part of it"
    assert EVERYTHING.text(found) == found
    assert Redactor(RedactionSettings()).text(text) == text


@given(text=st.text(max_size=200))
def test_a_text_is_marked_once(text: str) -> None:
    found = EVERYTHING.text(text)
    assert EVERYTHING.text(found) == found
    assert bool(marks_in(found)) == (found != text)


@pytest.mark.parametrize(
    "text",
    [
        "Call +43 660 1234567 before 2025-03-31 14:00.",
        "Invoice 2024-000123456, 30 pieces at 12.50",
        "4111 1111 1111 1112",
        "0000 0000 0000 0000",
        "9 a.m. to 5 p.m., rooms 101, 102, 103, 104, 105",
        "timestamps 1717243200000000 and 1717243260000000",
        "The password was changed. Keys are in the drawer, and the token of love is a rose.",
        "The secret is out. Basic income. A bearer of news.",
        "See https://example.com:8080/path and ann@example.com",
    ],
)
def test_what_is_neither_stays(text: str) -> None:
    assert EVERYTHING.text(text) == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("it is AKIAIOSFODNN7EXAMPLE here", "AKIAIOSFODNN7EXAMPLE"),
        ("ghp_" + "a1" * 18, "ghp_" + "a1" * 18),
        ("glpat-abcdefghijklmnopqrst", "glpat-abcdefghijklmnopqrst"),
        ("xoxb-123456789012-abcdef", "xoxb-123456789012-abcdef"),
        ("key sk_" + "live_abcdefghijklmnop1234", "abcdefghijklmnop1234"),
        ("sk-proj-abcdefghijklmnopqrstuv", "abcdefghijklmnopqrstuv"),
        ("pk_live_0123456789abcdef_" + "0" * 64, "0" * 64),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "eyJzdWIiOiIxIn0"),
        ("Authorization: Bearer abcdefghijklmnop.qrst", "abcdefghijklmnop"),
        ("postgresql://app:p4ss-w0rd@db/notes", "p4ss-w0rd"),
        ("My password is hunter22, I think.", "hunter22"),
        ('{"api_key": "0123-abcd-4567"}', "0123-abcd-4567"),
        ("PASSWORD='correct horse battery'", "correct horse battery"),
        ("access token := zzzzzzzz", "zzzzzzzz"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n-----END OPENSSH PRIVATE KEY-----\n", "b3Blbn"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEv and then it was cut", "MIIEv"),
    ],
)
def test_secrets_are_seen(text: str, secret: str) -> None:
    found = EVERYTHING.text(text)
    assert SECRET in found
    assert secret not in found
    assert EVERYTHING.text(found) == found
    assert Redactor(RedactionSettings(card_numbers=True)).text(text) == text


def test_every_text_of_a_request_is_read_and_no_name() -> None:
    card = "4111 1111 1111 1111"
    request = memory_ingest_pb2.AssertTriplesRequest(graph_id=card.replace(" ", ""), request_id="r")
    claim = request.claims.add(predicate="pays_with", fact=f"Ana pays with {card}", quote=card)
    claim.subject.name = "Ana"
    claim.object.literal.number_value = 4111111111111111
    request.denials.add().object.literal.string_value = card
    request.ends.add().object.entity.name = card
    found = redacted(request, EVERYTHING)
    assert digits_of(_texts(found)) == ""
    assert found.graph_id == request.graph_id
    assert found.claims[0].object.literal == entity_pb2.Literal(string_value=CARD)
    assert found.claims[0].fact == f"Ana pays with {CARD}"
    assert request.claims[0].quote == card, "what was given stays as it is"


def _texts(message: Message) -> str:
    return re.sub(r"graph_id: \"\d+\"", "", str(message))


def test_time_grows_with_the_text_alone() -> None:
    """Nothing in it backtracks: what is worst for a pattern is read as the rest."""
    for bad in (
        "4 ",
        "1",
        "password is ",
        "x://a:b",
        "-----BEGIN PRIVATE KEY-----",
        "eyJaaaaaaaa.",
        "basic ",
    ):
        assert EVERYTHING.text(bad * 1000) is not None
