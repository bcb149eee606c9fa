"""What is asked of a real server and of the double alike: each scenario is played in a space of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping

from tests.doubles.graphd.client import Step
from tests.machine import ROOT

SPACE = "palimpsest_golden"
OPENING = (
    Step(f"DROP SPACE IF EXISTS `{SPACE}`"),
    Step(
        f"CREATE SPACE IF NOT EXISTS `{SPACE}`"
        "(partition_num = 7, replica_factor = 1, vid_type = FIXED_STRING(64))"
    ),
    Step(f"USE `{SPACE}`"),
)
_CLUSTERS_OWN = ("ADD HOSTS", "SHOW HOSTS", "SHOW SPACES", "DESCRIBE SPACE")
_BEGINNINGS = ("CREATE TAG", "CREATE EDGE", "DESCRIBE TAG", "DESCRIBE EDGE", "SHOW TAGS", "SHOW EDGES")
_LONGEST = "v" * 64
BOTH = {"yes": True, "no": False}


def cluster_dependent(statement: str) -> bool:
    """Whether rows tell of the cluster at hand: then columns alone can be compared."""
    return statement.startswith(_CLUSTERS_OWN)


def scenarios() -> Mapping[str, tuple[Step, ...]]:
    """By name: the name of the recording."""
    return {
        "statements": tuple(_of_the_store()),
        "vertices": (*_schema(), *_vertices()),
        "edges": (*_schema(), *_edges()),
        "mistakes": (*_schema(), *_mistakes()),
    }


def _of_the_store() -> Iterator[Step]:
    """Every statement that the store can send, its schema first."""
    command = [sys.executable, "-m", "services.stores.graph.nebula", "--statements", "--parameters"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = [line.partition("\t") for line in told.splitlines()]
    steps = [
        Step(statement.replace("`palimpsest`", f"`{SPACE}`"), json.loads(parameters))
        for statement, _, parameters in lines
        if not statement.startswith(("ADD HOSTS", "CREATE SPACE", "DROP SPACE", "USE"))
    ]
    yield from (step for step in steps if step.statement.startswith(_BEGINNINGS))
    yield from (step for step in steps if step.statement.startswith("INSERT"))
    later = ("DELETE", *_BEGINNINGS, "INSERT")
    yield from (step for step in steps if not step.statement.startswith(later))
    yield from (step for step in steps if step.statement.startswith("DELETE"))


def _schema() -> Iterator[Step]:
    yield Step("CREATE TAG IF NOT EXISTS thing(name string NOT NULL, size int64 NOT NULL)")
    yield Step("CREATE TAG IF NOT EXISTS thing(name string NOT NULL)")
    yield Step("CREATE EDGE IF NOT EXISTS likes(much double NOT NULL, sure bool NOT NULL)")
    yield Step("CREATE EDGE IF NOT EXISTS knows()")
    yield from map(Step, ("SHOW TAGS", "SHOW EDGES", "DESCRIBE TAG thing", "DESCRIBE EDGE `knows`"))


def _vertices() -> Iterator[Step]:
    insert = 'INSERT VERTEX thing(name, size) VALUES "a":($name, $size)'
    fetch = Step('FETCH PROP ON thing "a", "b", "c", "a" YIELD id(vertex) AS vid, properties(vertex) AS row')
    texts = (
        "",
        "quotes \" ' `",
        "back\\slash\\n",
        "\r\n\t",
        "nul\0here",
        "日本語",
        "👩‍👩‍👧",
        "$p0 {x} %s # --",
    )
    yield fetch
    for text in texts:
        yield Step(insert, {"name": text, "size": len(text)})
        yield fetch
    for size in (2**63 - 1, -(2**63), 0):
        yield Step(insert, {"name": "a", "size": size, "unused": 1})
        yield fetch
    for fitted in (True, False, 0.5, -0.5, 2.4):
        yield Step(insert, {"name": "fitted", "size": fitted})
        yield fetch
    yield Step('UPDATE VERTEX ON thing "a" SET size = $half', {"half": 1.5})
    yield fetch
    yield Step(
        'INSERT VERTEX IF NOT EXISTS thing(size, name) VALUES "a":(7, "kept"), "b":(1, "one"), "b":(2, "two")'
    )
    yield fetch
    yield Step('INSERT VERTEX thing(name, size) VALUES "c":("one", 1), "c":("two", 2)')
    yield fetch
    update = 'UPDATE VERTEX ON thing "a" SET size = $size, name = $name'
    told = "YIELD size AS size, name AS name"
    yield Step(f"{update} WHEN size == 0 {told}", {"size": 5, "name": "five"})
    yield Step(f"{update} WHEN size == 0 {told}", {"size": 9, "name": "nine"})
    yield Step(f"{update} WHEN size > $size {told}", {"size": 4, "name": "four"})
    yield Step(f"{update} WHEN size >= 0 AND size < $revision", {"size": 6, "name": "six", "revision": 9})
    yield Step(f"{update} WHEN name == 1 {told}", {"size": 7, "name": "seven"})
    yield Step(f"{update} WHEN size < $size", {"size": -1, "name": "less"})
    yield Step(update, {"size": 8, "name": "eight"})
    yield fetch
    yield Step('DELETE VERTEX "a", "nothing", "a" WITH EDGE')
    yield Step('DELETE VERTEX "a" WITH EDGE')
    yield Step('DELETE VERTEX "b"')
    yield fetch


def _edges() -> Iterator[Step]:
    whole = (
        "YIELD type(edge) AS type, src(edge) AS src, dst(edge) AS dst, rank(edge) AS rank, "
        "properties(edge) AS row"
    )
    forth = Step(f'GO FROM "a", "b", "a" OVER likes, knows {whole}')
    back = Step(f'GO FROM "z", "b", "nothing" OVER knows, likes REVERSELY {whole}')
    yield forth
    yield Step(
        'INSERT EDGE likes(much, sure) VALUES "a"->"z"@3:(1, $yes), "a"->"b"@1:($half, $no), '
        '"b"->"z"@2:(2, $yes), "a"->"b"@-2:(9, $yes), "a"->"a"@0:(4, $no)',
        {"half": 0.5, **BOTH},
    )
    yield Step(f'INSERT EDGE knows() VALUES "a"->"z"@{-(2**63)}:()')
    most = 2**63 - 1
    yield Step(f'INSERT EDGE knows() VALUES "a"->"z"@{most}:(), "a"->"z"@{-most}:(), "z"->"z"@1:()')
    yield from (forth, back)
    yield Step(
        'INSERT EDGE IF NOT EXISTS likes(much, sure) VALUES "a"->"b"@1:(7, $yes), "a"->"c"@1:(8, $yes)', BOTH
    )
    yield Step('INSERT EDGE likes(sure, much) VALUES "a"->"c"@2:($no, 1), "a"->"c"@2:($yes, 2)', BOTH)
    yield from (forth, back)
    yield Step('INSERT VERTEX thing(name, size) VALUES "b":("b", 1), "z":("z", 26)')
    likes, order = 'GO FROM "a", "b" OVER likes', "| ORDER BY $-.rank DESC, $-.dst"
    ends = "YIELD DISTINCT rank(edge) AS rank, dst(edge) AS dst"
    for where in (
        "rank(edge) <= 1",
        "rank(edge) < 2 AND $$.thing.size < 20",
        '(rank(edge) > 1 OR (rank(edge) == 1 AND dst(edge) > "b"))',
        'rank(edge) == 1 AND src(edge) < "b"',
        "$$.thing.size > -1",
        "likes.much >= 1",
        "likes.much == 2 OR likes.sure == $no",
        "likes.sure == $yes AND rank(edge) >= $n",
        "rank(edge) == $text",
        "rank(edge) < $text OR dst(edge) == $text",
    ):
        yield Step(f"{likes} WHERE {where} {ends} {order}", {"n": 2, "text": "z", **BOTH})
        back_where = f'GO FROM "z", "c" OVER likes REVERSELY WHERE {where} {ends}'
        yield Step(back_where, {"n": 2, "text": "z", **BOTH})
    steps = "YIELD likes._rank AS rank, likes._dst AS member, likes._src AS anchor"
    for where in ("likes._rank <= 2", '(likes._rank > 1 OR (likes._rank == 1 AND likes._dst >= "b"))'):
        yield Step(f"{likes} WHERE {where} {steps}")
        yield Step(f'GO FROM "z", "b" OVER likes REVERSELY WHERE {where} {steps}')
        yield Step(f'GO FROM "z", "b" OVER likes REVERSELY WHERE {where} AND $$.thing.size < 9 {steps}')
    yield Step(f'GO FROM "z", "b" OVER likes, knows REVERSELY {steps}')
    yield Step(f"{likes}, knows YIELD type(edge) AS type, likes.much AS much, likes.sure AS sure")
    yield Step(f"{likes} {ends} {order} | LIMIT 2")
    yield Step(f"{likes} {ends} | ORDER BY $-.dst DESC, $-.rank DESC | LIMIT 0")
    yield Step(f"{likes} YIELD src(edge) AS src | YIELD count(*) AS members")
    yield Step('GO FROM "nothing" OVER likes YIELD src(edge) AS src | YIELD count(*) AS members')
    yield Step("GO FROM \"a\" OVER knows YIELD DISTINCT src(edge) AS src, dst(edge) AS dst")  # fmt: skip
    for deleted in (
        'EDGE likes "a"->"b"@1, "a"->"b"@99',
        'VERTEX "b"',
        'VERTEX "a", "nothing" WITH EDGE',
        'VERTEX "z" WITH EDGE',
    ):
        yield from (Step(f"DELETE {deleted}"), forth, back)


_GIVEN: dict[str, str | int | float | bool | None] = {
    "vid": "a",
    "rank": 1,
    "null": None,
    "half": 0.5,
    "huge": 1e30,
    "name": "x",
    **BOTH,
}


def _mistakes() -> Iterator[Step]:
    insert = "INSERT VERTEX thing(name, size) VALUES"
    yield Step(f'{insert} "a":("x", 1)')
    statements = (
        'FETCH PROP ON nothing "a" YIELD id(vertex) AS v',
        'GO FROM "a" OVER nothing YIELD src(edge) AS s',
        'GO FROM "a" OVER likes YIELD knows.much AS s',
        'GO FROM "a" OVER likes YIELD likes.depth AS s',
        'GO FROM "a" OVER likes YIELD depth AS s',
        'GO FROM "a" OVER likes YIELD src(edge) AS s, dst(edge) AS s',
        'FETCH PROP ON thing "a" YIELD thing.name AS s, thing.size AS s',
        'GO FROM "a" OVER likes YIELD src(edge) AS s | ORDER BY $-.d',
        'GO FROM "a" OVER likes WHERE $$.thing.x > 1 YIELD src(edge) AS s',
        'GO FROM "a" OVER likes WHERE $$.nothing.x > 1 YIELD src(edge) AS s',
        'GO FROM $vid OVER likes YIELD src(edge) AS s',
        f'GO FROM "{_LONGEST}v" OVER likes YIELD src(edge) AS s',
        f'FETCH PROP ON thing "{_LONGEST}v" YIELD id(vertex) AS v',
        f'DELETE VERTEX "{_LONGEST}v" WITH EDGE',
        f'UPDATE VERTEX ON thing "{_LONGEST}v" SET size = 1',
        'INSERT VERTEX nothing() VALUES "a":()',
        'INSERT EDGE nothing() VALUES "a"->"b"@0:()',
        'INSERT EDGE likes(much) VALUES "a"->"b"@0:(1)',
        'INSERT EDGE likes(much, sure) VALUES "a"->"b"@0:($null, $yes)',
        f'INSERT EDGE knows() VALUES "a"->"{_LONGEST}v"@0:()',
        'INSERT EDGE knows() VALUES "a"->"b"@$rank:()',
        'INSERT VERTEX thing(name, weight) VALUES "a":("x", 1)',
        'INSERT VERTEX thing(name) VALUES "a":("x")',
        f'{insert} "a":("x")',
        f'{insert} "a":("x", $null)',
        f'{insert} "a":(1, 1)',
        f'{insert} "a":("x", $yes)',
        f'{insert} "a":("x", $huge)',
        f'{insert} "a":("x", "1")',
        f'{insert} $vid:("x", 1)',
        f'{insert} "{_LONGEST}":("x", 1)',
        f'{insert} "{_LONGEST}v":("x", 1)',
        f'{insert} "a":("x", 9223372036854775808)',
        'UPDATE VERTEX ON thing "absent" SET size = 1',
        'UPDATE VERTEX ON thing "absent" SET size = 1 WHEN size < 0',
        'UPDATE VERTEX ON nothing "a" SET size = 1',
        'UPDATE VERTEX ON thing "a" SET weight = 1',
        'UPDATE VERTEX ON thing "a" SET size = $name',
        'UPDATE VERTEX ON thing "a" SET size = $null',
        'UPDATE VERTEX ON thing "a" SET size = 1 WHEN weight < 1',
        'DELETE EDGE nothing "a"->"b"@0',
        "USE `nothing_at_all`",
        "DESCRIBE TAG nothing",
        "DESCRIBE EDGE nothing",
        "CREATE TAG IF NOT EXISTS edge(a string NOT NULL)",
        'FETCH PROP ON thing "a" YIELD id(vertex) AS v',
    )  # fmt: skip
    yield from (Step(statement, _GIVEN) for statement in statements)
