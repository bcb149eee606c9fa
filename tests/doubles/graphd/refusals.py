"""Errors as graphd gives them: its codes, and its words as far as a client goes by them."""

from nebula3.common.ttypes import ErrorCode


class Refusal(Exception):
    """A statement that is answered with an error code and a message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


def syntax_error(message: str) -> Refusal:
    return Refusal(ErrorCode.E_SYNTAX_ERROR, f"SyntaxError: {message}")


def semantic_error(message: str) -> Refusal:
    return Refusal(ErrorCode.E_SEMANTIC_ERROR, f"SemanticError: {message}")


def execution_error(message: str) -> Refusal:
    return Refusal(ErrorCode.E_EXECUTION_ERROR, message)


def storage_error(message: str) -> Refusal:
    return execution_error(f"Storage Error: {message}")


def session_gone(session: int) -> Refusal:
    reason = f"Session `{session}' not found: Session not existed!"
    return Refusal(ErrorCode.E_SESSION_INVALID, f"Get sessionId[{session}] failed: {reason}")


def leader_changed(part: int) -> Refusal:
    return storage_error(f"Not the leader of {part}. Please retry later.")


def data_conflict() -> Refusal:
    return storage_error(
        "More than one request trying to add/update/delete one edge/vertex at the same time."
    )


def rpc_failure() -> Refusal:
    return storage_error("RPC failure, probably timeout.")


def no_schema(name: str) -> Refusal:
    return semantic_error(f"No schema found for `{name}'")
