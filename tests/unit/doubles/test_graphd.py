"""The double of graphd answers the client's own classes on the wire, and refuses what it does not know."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from nebula3.common.ttypes import ErrorCode
from nebula3.Exception import AuthFailedException
from nebula3.gclient.net.Connection import Connection

from tests.doubles.graphd import Graphd
from tests.doubles.graphd.client import Client
from tests.doubles.graphd.engine import GraphEngine
from tests.doubles.graphd.refusals import Refusal
from tests.doubles.graphd.sessions import Session
from tests.machine import ROOT

LONGEST = "v" * 64


@pytest.fixture
def client(graphd_double: Graphd) -> Iterator[Client]:
    """In a space with a tag and two edge types."""
    with Client(graphd_double.address) as client:
        for statement in (
            "CREATE SPACE IF NOT EXISTS `s`(partition_num = 7, replica_factor = 1, "
            "vid_type = FIXED_STRING(64))",
            "USE `s`",
            "CREATE TAG IF NOT EXISTS thing(name string NOT NULL, size int64 NOT NULL)",
            "CREATE EDGE IF NOT EXISTS likes(much double NOT NULL)",
            "CREATE EDGE IF NOT EXISTS knows()",
        ):
            answer = client.ask(statement)
            assert answer.code == ErrorCode.SUCCEEDED, answer
        yield client


def done(client: Client, statement: str, **parameters: str | int | float | bool | None) -> list[list[object]]:
    """The rows of a statement that must succeed."""
    answer = client.ask(statement, **parameters)
    assert answer.code == ErrorCode.SUCCEEDED, answer
    return answer.rows


def put(client: Client, *vids: str) -> None:
    for size, vid in enumerate(vids):
        values = f'"{vid}":($name, $size)'
        done(client, f"INSERT VERTEX thing(name, size) VALUES {values}", name=f"name of {vid}", size=size)


# Sessions


def test_a_wrong_password_is_refused(graphd_double: Graphd) -> None:
    host, _, port = graphd_double.address.partition(":")
    connection = Connection()
    connection.open(host, int(port), 5_000)
    with pytest.raises(AuthFailedException):
        connection.authenticate("root", "wrong")
    connection.close()


def test_signing_out_ends_the_session(graphd_double: Graphd) -> None:
    with Client(graphd_double.address) as client:
        assert graphd_double.sessions.count() == 1
        done(client, "SHOW SPACES")
    graphd_double.stop()  # a sign-out has no answer; a stop waits until connections have ended
    assert graphd_double.sessions.count() == 0


def test_sessions_of_a_user_are_few() -> None:
    with (
        Graphd(max_sessions=1) as graphd,
        Client(graphd.address),
        pytest.raises(AuthFailedException, match="Too many sessions"),
    ):
        Client(graphd.address)


def test_a_session_outlives_its_connection_not_the_server(graphd_double: Graphd) -> None:
    with Client(graphd_double.address) as client:
        graphd_double.sessions.lose_all()
        answer = client.ask("SHOW SPACES")
        assert answer.code == ErrorCode.E_SESSION_INVALID
        assert "Session not existed" in answer.message


def test_json(client: Client) -> None:
    put(client, "a")
    told = json.loads(client.json('FETCH PROP ON thing "a" YIELD id(vertex) AS vid'))
    assert told["errors"][0]["code"] == 0
    assert told["results"][0]["columns"] == ["vid"]
    assert told["results"][0]["data"] == [{"row": ["a"]}]


def test_in_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "tests.doubles.graphd", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with Client(f"127.0.0.1:{port}") as client:
            assert done(client, "SHOW SPACES") == []
        process.terminate()
        assert process.wait(20) == 0


# Refusals


@pytest.mark.parametrize(
    "statement",
    [
        "MATCH (v) RETURN v",
        "LOOKUP ON thing YIELD id(vertex) AS vid",
        "GO 2 STEPS FROM \"a\" OVER likes YIELD src(edge) AS s",
        'GO FROM "a" OVER * YIELD src(edge) AS s',
        'FETCH PROP ON thing "a"',
        'FETCH PROP ON thing "a" YIELD id(vertex) AS vid; SHOW TAGS',
        'FETCH PROP ON thing "a" YIELD id(vertex) AS vid -- comment',
        'FETCH PROP ON thing $vid YIELD id(vertex) AS vid',
        'FETCH PROP ON thing "a\\"b" YIELD id(vertex) AS vid',
        'INSERT VERTEX thing(name, size) VALUES "a":("x", 9223372036854775808)',
        'INSERT EDGE knows() VALUES "a"->"b"@$rank:()',
        'DELETE VERTEX "a" WITH TAG',
        "CREATE TAG IF NOT EXISTS edge(a string NOT NULL)",
        "DROP TAG thing",
        "SHOW TAGS | LIMIT 1",
        "",
    ],
)  # fmt: skip
def test_what_the_store_does_not_say_is_a_syntax_error(client: Client, statement: str) -> None:
    answer = client.ask(statement, vid="a", rank=1)
    assert answer.code == ErrorCode.E_SYNTAX_ERROR, answer
    assert answer.message.startswith("SyntaxError: ")


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        ('FETCH PROP ON nothing "a" YIELD id(vertex) AS v', -1005, "TagNotFound: TagName `nothing`"),
        ('GO FROM "a" OVER nothing YIELD src(edge) AS s', -1009, "nothing not found in space [s]."),
        ('GO FROM "a" OVER likes YIELD knows.much AS s', -1009, "not found the property `much'"),
        ('GO FROM "a" OVER knows YIELD likes.much AS s', -1009, "edge should be declared first"),
        ('GO FROM "a" OVER knows YIELD nothing.much AS s', -1005, "EdgeNotFound: EdgeName `nothing`"),
        ('GO FROM "a" OVER likes YIELD likes.depth AS s', -1009, "not found the property `depth'"),
        ('GO FROM "a" OVER likes WHERE $$.thing.x > 1 YIELD src(edge) AS s', -1009, "`x'"),
        ('GO FROM "a" OVER likes WHERE rank(edge) <= $n YIELD src(edge) AS s', 0, ""),
        ('INSERT VERTEX nothing() VALUES "a":()', -1009, "No schema found for `nothing'"),
        ('INSERT EDGE nothing() VALUES "a"->"b"@0:()', -1005, "EdgeNotFound"),
        ('INSERT VERTEX thing(name, weight) VALUES "a":("x", 1)', -1009, "Unknown column `weight'"),
        ('INSERT VERTEX thing(name, size) VALUES "a":("x")', -1009, "Column count"),
        ('INSERT VERTEX thing(name, size) VALUES "a":("x", $unset)', -1009, "Undefined parameters: unset"),
        ('INSERT VERTEX thing(name, size) VALUES "a":(1, 1)', -1005, "The data type does not meet"),
        (f'INSERT VERTEX thing(name, size) VALUES "{LONGEST}":("x", 1)', 0, ""),
        (f'INSERT VERTEX thing(name, size) VALUES "{LONGEST}v":("x", 1)', -1005, "The VID must be"),
        (f'INSERT EDGE knows() VALUES "a"->"{LONGEST}v"@0:()', -1005, "The VID must be"),
        ('UPDATE VERTEX ON thing "absent" SET size = 1', -1005, "Vertex or edge not found."),
        ("USE `nothing`", -1005, "SpaceNotFound"),
        ("DESCRIBE TAG nothing", -1005, "TagNotFound: Tag not existed!"),
        ("DESCRIBE EDGE nothing", -1005, "EdgeNotFound: Edge not existed!"),
        ('ADD HOSTS "127.0.0.1":9779', -1005, "Existed!"),
    ],
)
def test_mistakes(client: Client, statement: str, code: int, message: str) -> None:
    answer = client.ask(statement, n=3)
    assert (answer.code, message in answer.message) == (code, True), answer


def test_a_space_must_be_chosen(graphd_double: Graphd) -> None:
    with Client(graphd_double.address) as client:
        answer = client.ask("SHOW TAGS")
        assert (answer.code, answer.message) == (
            ErrorCode.E_SEMANTIC_ERROR,
            "SemanticError: Space was not chosen.",
        )


# The catalogue


def test_the_catalogue(client: Client) -> None:
    assert done(client, "SHOW SPACES") == [["s"]]
    assert done(client, "SHOW TAGS") == [["thing"]]
    assert done(client, "SHOW EDGES") == [["knows"], ["likes"]]
    empty = {"empty": True}
    assert done(client, "DESCRIBE TAG thing") == [
        ["name", "string", "NO", empty, empty],
        ["size", "int64", "NO", empty, empty],
    ]
    assert done(client, "SHOW HOSTS")[0][:3] == ["127.0.0.1", 9779, "ONLINE"]
    assert done(client, "DESCRIBE SPACE `s`")[0][1:4] == ["s", 7, 1]
    done(client, "DROP SPACE IF EXISTS `s`")
    assert done(client, "SHOW SPACES") == []


def test_a_schema_is_seen_after_a_heartbeat() -> None:
    now = 100.0
    engine = GraphEngine(heartbeat_seconds=10, clock=lambda: now)
    session = Session(1)

    def execute(statement: str) -> None:
        engine.execute(session, statement, {}, partially=False)

    execute("CREATE SPACE IF NOT EXISTS s(partition_num = 1, replica_factor = 1, vid_type = FIXED_STRING(8))")
    execute("USE s")
    execute("CREATE TAG IF NOT EXISTS t()")
    execute("DESCRIBE TAG t")
    with pytest.raises(Refusal, match="No schema found for `t'"):
        execute('INSERT VERTEX t() VALUES "v":()')
    now += 10
    execute('INSERT VERTEX t() VALUES "v":()')


# Vertices


def test_vertices_that_are_absent_yield_no_row(client: Client) -> None:
    put(client, "a")
    rows = done(client, 'FETCH PROP ON thing "a", "b", "a" YIELD id(vertex) AS v, properties(vertex) AS row')
    assert rows == [["a", {"map": {"name": "name of a", "size": 0}}]] * 2


def test_insert_overwrites_unless_told_to_keep(client: Client) -> None:
    put(client, "a")
    done(client, 'INSERT VERTEX IF NOT EXISTS thing(name, size) VALUES "a":("kept?", 7), "b":("new", 8)')
    fetch = 'FETCH PROP ON thing "a", "b" YIELD properties(vertex) AS row'
    names = [row[0]["map"]["name"] for row in done(client, fetch)]  # type: ignore[index]  # plain data
    assert sorted(names) == ["name of a", "new"]
    done(client, 'INSERT VERTEX thing(name, size) VALUES "a":("over", 7)')
    assert {"map": {"name": "over", "size": 7}} in [row[0] for row in done(client, fetch)]


@pytest.mark.parametrize(
    "text", ["", "quotes \" ' `", "back\\slash\\n", "\r\n\t\0", "日本語", "👩‍👩‍👧", "x" * 10_000]
)
def test_texts_of_parameters_come_back(client: Client, text: str) -> None:
    done(client, 'INSERT VERTEX thing(name, size) VALUES "a":($name, $size)', name=text, size=-(2**63))
    rows = done(client, 'FETCH PROP ON thing "a" YIELD properties(vertex) AS row')
    assert rows == [[{"map": {"name": text, "size": -(2**63)}}]]


def test_an_update_whose_condition_is_false_changes_nothing_and_is_no_error(client: Client) -> None:
    put(client, "a")
    update = 'UPDATE VERTEX ON thing "a" SET size = $size WHEN size == $was YIELD size AS now, name AS name'
    assert done(client, update, size=5, was=0) == [[5, "name of a"]]
    assert done(client, update, size=9, was=0) == [[5, "name of a"]]
    assert client.ask('UPDATE VERTEX ON thing "a" SET size = 1').columns is None


@pytest.mark.parametrize(
    ("given", "stored"), [(True, 1), (False, 0), (0.5, 1), (-0.5, -1), (2.4, 2), (-(2**63), -(2**63))]
)
def test_numbers_and_truth_values_are_made_fit(client: Client, given: float, stored: int) -> None:
    done(client, 'INSERT VERTEX thing(name, size) VALUES "a":("x", $size)', size=given)
    assert done(client, 'FETCH PROP ON thing "a" YIELD thing.size AS size') == [[stored]]


def test_an_update_to_another_type_is_refused(client: Client) -> None:
    put(client, "a")
    answer = client.ask('UPDATE VERTEX ON thing "a" SET size = $size', size="big")
    assert (answer.code, "Invalid data" in answer.message) == (ErrorCode.E_EXECUTION_ERROR, True)


# Edges


def edges(client: Client) -> None:
    done(
        client,
        'INSERT EDGE likes(much) VALUES "a"->"z"@3:(1), "a"->"b"@1:($half), "b"->"z"@2:(2), "a"->"b"@-2:(9)',
        half=0.5,
    )
    done(client, 'INSERT EDGE knows() VALUES "a"->"z"@5:()')


def test_edges_are_seen_from_both_ends_and_may_dangle(client: Client) -> None:
    edges(client)
    told = "YIELD type(edge) AS t, src(edge) AS s, dst(edge) AS d, rank(edge) AS r, properties(edge) AS p"
    forth = done(client, f'GO FROM "a" OVER likes, knows {told}')
    back = done(client, f'GO FROM "z" OVER likes, knows REVERSELY {told}')
    assert ["likes", "a", "z", 3, {"map": {"much": 1.0}}] in forth
    assert ["knows", "a", "z", 5, {"map": {}}] in forth
    assert len(forth) == 4
    assert sorted(row[:4] for row in back) == [
        ["knows", "a", "z", 5],
        ["likes", "a", "z", 3],
        ["likes", "b", "z", 2],
    ]


def test_edges_between_two_vertices_are_told_apart_by_rank(client: Client) -> None:
    edges(client)
    go = 'GO FROM "a" OVER likes YIELD dst(edge) AS d, rank(edge) AS r'
    assert done(client, f"{go} | ORDER BY $-.d, $-.r") == [["b", -2], ["b", 1], ["z", 3]]
    assert done(client, f"{go} | ORDER BY $-.r DESC, $-.d DESC | LIMIT 2") == [["z", 3], ["b", 1]]
    done(client, 'INSERT EDGE IF NOT EXISTS likes(much) VALUES "a"->"b"@1:(7)')
    assert [0.5] in done(client, 'GO FROM "a" OVER likes YIELD likes.much AS much')


def test_a_step_ends_where_it_leads_whichever_way_the_edge_was_met(client: Client) -> None:
    edges(client)
    step = "YIELD likes._src AS s, likes._dst AS d, likes._rank AS r"
    assert ["a", "z", 3] in done(client, f'GO FROM "a" OVER likes {step}')
    assert ["z", "a", 3] in done(client, f'GO FROM "z" OVER likes REVERSELY {step}')
    assert done(client, f'GO FROM "z" OVER likes REVERSELY WHERE likes._dst > "a" {step}') == [["z", "b", 2]]


def test_properties_of_other_types_are_empty(client: Client) -> None:
    edges(client)
    rows = done(client, 'GO FROM "a" OVER likes, knows YIELD type(edge) AS t, likes.much AS much')
    assert ["knows", {"empty": True}] in rows


def test_a_filter_on_the_far_end_leaves_dangling_edges_out(client: Client) -> None:
    edges(client)
    put(client, "b")
    go = 'GO FROM "a" OVER likes WHERE $$.thing.size > -1 AND rank(edge) >= 1 YIELD DISTINCT dst(edge) AS d'
    assert done(client, go) == [["b"]]


def test_counts(client: Client) -> None:
    count = "OVER likes WHERE rank(edge) <= 3 YIELD src(edge) AS s | YIELD count(*) AS n"
    assert done(client, f'GO FROM "a" {count}') == [[0]]
    edges(client)
    assert done(client, f'GO FROM "a" {count}') == [[3]]


def test_a_vertex_goes_with_all_its_edges(client: Client) -> None:
    edges(client)
    put(client, "a", "b")
    done(client, 'DELETE VERTEX "a", "nothing" WITH EDGE')
    assert done(client, 'FETCH PROP ON thing "a" YIELD id(vertex) AS v') == []
    assert done(client, 'GO FROM "a" OVER likes, knows YIELD dst(edge) AS d') == []
    assert done(client, 'GO FROM "z", "b" OVER likes, knows REVERSELY YIELD src(edge) AS s') == [["b"]]


def test_edges_are_deleted_by_key(client: Client) -> None:
    edges(client)
    done(client, 'DELETE EDGE likes "a"->"b"@1, "a"->"b"@99')
    assert done(client, 'GO FROM "b" OVER likes REVERSELY YIELD rank(edge) AS r') == [[-2]]
