"""Every sentence: one line, of our own alphabet outside its parameters, whatever the values say."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.stores.graph.nebula import layout, statements
from services.stores.graph.nebula.__main__ import main
from services.stores.graph.nebula.samples import HOSTILE, samples
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.statements import EdgeKey, Position, Window
from services.stores.graph.nebula.vids import Kind, Vid, vid
from tests.builders import a_scope

ALPHABET = re.compile(r"""[A-Za-z0-9_$@"`.,:;()<>=|*\- ]+""")
STRING = re.compile(r'"[0-9a-f]{16}[A-Za-z][0-9A-Za-z_-]*"')
HOST = re.compile(r'"[0-9A-Za-z.-]+":\d+')
FACT = vid(a_scope(), Kind.STATEMENT, "one")


def test_all_sentences_are_of_our_alphabet_and_one_line() -> None:
    for sentence in samples():
        assert ALPHABET.fullmatch(sentence.text), sentence.text
        bare = HOST.sub("", STRING.sub("", sentence.text))
        assert '"' not in bare, bare


def test_every_parameter_is_named_and_every_name_given() -> None:
    for sentence in samples():
        named = set(re.findall(r"\$([a-z]\w*)", sentence.text))
        assert named == sentence.parameters.keys()


def test_hostile_text_travels_as_parameters() -> None:
    values = {value for sentence in samples() for value in sentence.parameters.values()}
    assert set(HOSTILE) <= values


def test_every_tag_and_edge_type_is_written_and_read() -> None:
    told = "\n".join(sentence.text for sentence in samples())
    for edge in layout.EDGES:
        assert f"INSERT EDGE IF NOT EXISTS {edge.name}(" in told
        assert f"DELETE EDGE {edge.name} " in told
        assert re.search(rf"OVER [a-z_, ]*\b{edge.name}\b", told), edge.name
    for tag in layout.TAGS:
        assert f"INSERT VERTEX IF NOT EXISTS {tag.name}(" in told
        assert f"FETCH PROP ON {tag.name} " in told


def test_the_command_prints_one_sentence_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--statements"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [sentence.text for sentence in samples()]
    assert main(["--statements", "--parameters"]) == 0
    for line, sentence in zip(capsys.readouterr().out.splitlines(), samples(), strict=True):
        text, _, parameters = line.partition("\t")
        assert (text, json.loads(parameters)) == (sentence.text, dict(sentence.parameters))


@pytest.mark.parametrize("name", ["", "a b", "a`b", "1a", "a;DROP", "имя", 'a"', "a-b"])
def test_a_space_has_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError):
        statements.use(name)
    with pytest.raises(ValueError):
        NebulaSettings(addresses="127.0.0.1:9669", space=name)


@pytest.mark.parametrize("host", ["", 'a"', "a b", "a`", "a\n"])
def test_a_host_is_no_text(host: str) -> None:
    with pytest.raises(ValueError):
        statements.add_hosts([(host, 1)])


def test_only_what_adds_hosts_is_not_repeated() -> None:
    assert {one.text.split()[0] for one in samples() if not one.repeatable} == {"ADD"}


@given(
    size=st.integers(1, 10_000),
    newest=st.booleans(),
    until=st.none() | st.integers(0, 2**62),
    created=st.none() | st.integers(0, 2**62),
    hull=st.none() | st.tuples(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62)),
)
def test_windows_say_what_they_hold(
    size: int, newest: bool, until: int | None, created: int | None, hull: tuple[int, int] | None
) -> None:
    after = None if created is None else Position(created, FACT)
    text = statements.members([FACT], layout.HAS_SUBJECT, Window(size, newest, until, after, hull)).text
    assert ALPHABET.fullmatch(text)
    assert text.endswith(f"LIMIT {size}")
    assert text.count(" DESC") == (3 if newest else 0)
    assert (f"has_subject._rank <= {until} " in text) == (until is not None)
    assert ("$$.statement.hull_from" in text) == (hull is not None)
    assert (f'has_subject._dst {"<" if newest else ">"} "{FACT}"' in text) == (after is not None)
    assert (" WHERE " in text) == any(one is not None for one in (until, after, hull))


def test_what_is_no_vid_can_not_be_said() -> None:
    for hostile in (*HOSTILE, f'{FACT}"', f"{FACT}\n", FACT.upper(), "x" * 64):
        with pytest.raises(ValueError):
            statements.fetch(layout.STATEMENT, [Vid(hostile)])
        with pytest.raises(ValueError):
            statements.delete_edges(layout.ALIAS, [EdgeKey(FACT, Vid(hostile))])
        with pytest.raises(ValueError):
            statements.members([FACT], layout.HAS_SUBJECT, Window(1, after=Position(1, Vid(hostile))))
