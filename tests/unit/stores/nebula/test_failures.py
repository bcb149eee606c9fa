"""What the server's errors mean: its own words of 3.6 to 3.8, each in its kind."""

import pytest
from nebula3.common.ttypes import ErrorCode

from services.stores.graph.nebula.failures import NebulaFailure, Trouble, trouble_of

EXECUTION = ErrorCode.E_EXECUTION_ERROR
STORAGE = "Storage Error: "

SAID = [
    (ErrorCode.E_SESSION_INVALID, "Session not existed!", Trouble.SESSION),
    (ErrorCode.E_SESSION_TIMEOUT, "", Trouble.SESSION),
    (ErrorCode.E_SEMANTIC_ERROR, "SemanticError: Space was not chosen.", Trouble.SESSION),
    (ErrorCode.E_SYNTAX_ERROR, "SyntaxError: syntax error near `GO'", Trouble.MISTAKE),
    (ErrorCode.E_STATEMENT_EMPTY, "", Trouble.MISTAKE),
    (ErrorCode.E_BAD_PERMISSION, "PermissionError: No permission to write data.", Trouble.MISTAKE),
    (ErrorCode.E_SEMANTIC_ERROR, "SemanticError: Invalid label identifiers: x", Trouble.MISTAKE),
    (ErrorCode.E_SEMANTIC_ERROR, "SemanticError: No schema found for `claim'", Trouble.BUSY),
    (ErrorCode.E_SEMANTIC_ERROR, "SemanticError: claim not found in space [palimpsest].", Trouble.BUSY),
    (ErrorCode.E_PARTIAL_SUCCEEDED, "", Trouble.BUSY),
    (ErrorCode.E_TOO_MANY_CONNECTIONS, "Too many sessions", Trouble.BUSY),
    (EXECUTION, STORAGE + "RPC failure, probably timeout.", Trouble.BUSY),
    (EXECUTION, STORAGE + "Not the leader of 3. Please retry later.", Trouble.BUSY),
    (
        EXECUTION,
        STORAGE + "More than one request trying to add/update/delete one edge/vertex at the same time.",
        Trouble.BUSY,
    ),
    (EXECUTION, STORAGE + "Term of part 3 is out of date. Please retry later.", Trouble.BUSY),
    (EXECUTION, STORAGE + "Write is blocked when creating snapshot. Please retry later.", Trouble.BUSY),
    (EXECUTION, STORAGE + "Part 3 raft buffer is full. Please retry later.", Trouble.BUSY),
    (EXECUTION, STORAGE + "Atomic operation failed.", Trouble.BUSY),
    (EXECUTION, STORAGE + "part: 3, error: E_CONSENSUS_ERROR(-3001).", Trouble.BUSY),
    (EXECUTION, STORAGE + "Part 3 not found.", Trouble.BUSY),
    (EXECUTION, STORAGE + "Tag not found.", Trouble.BUSY),
    (EXECUTION, "GraphMemoryExceeded: (-2600)", Trouble.BUSY),
    (EXECUTION, "SpaceNotFound: SpaceName `palimpsest`", Trouble.BUSY),
    (EXECUTION, STORAGE + "Vertex or edge not found.", Trouble.MISSING),
    (EXECUTION, STORAGE + "Invalid field value: may be the filed is not NULL or …", Trouble.MISTAKE),
    (EXECUTION, STORAGE + "The data type does not meet the requirements. Use …", Trouble.MISTAKE),
    (EXECUTION, STORAGE + "The VID must be a 64-bit integer or a string …", Trouble.MISTAKE),
    (EXECUTION, STORAGE + "Invalid filter.", Trouble.MISTAKE),
    (EXECUTION, STORAGE + "Invalid Update col or yield col.", Trouble.MISTAKE),
    (EXECUTION, STORAGE + "Out of range value.", Trouble.MISTAKE),
    (EXECUTION, STORAGE + "Invalid data, may be wrong value type.", Trouble.MISTAKE),
    (EXECUTION, STORAGE + "The not null field cannot be null.", Trouble.MISTAKE),
    (EXECUTION, "Existed!", Trouble.MISTAKE),
]


@pytest.mark.parametrize(
    ("code", "told", "kind"), SAID, ids=[told[:40] or str(code) for code, told, _ in SAID]
)
def test_each_error_has_its_kind(code: int, told: str, kind: Trouble) -> None:
    assert trouble_of(code, told) is kind


def test_only_what_may_pass_is_tried_again() -> None:
    assert {trouble for trouble in Trouble if trouble.passes} == {
        Trouble.SESSION,
        Trouble.BUSY,
        Trouble.LOST,
    }
    assert {trouble for trouble in Trouble if trouble.spoils} == {Trouble.SESSION, Trouble.LOST}


def test_a_failure_tells_no_text_of_the_server() -> None:
    failure = NebulaFailure(Trouble.MISTAKE, ErrorCode.E_SYNTAX_ERROR, "near `a secret'")
    assert str(failure) == "NebulaGraph: MISTAKE (E_SYNTAX_ERROR)"
    assert failure.told == "near `a secret'"
    assert str(NebulaFailure(Trouble.LOST)) == "NebulaGraph: LOST"
