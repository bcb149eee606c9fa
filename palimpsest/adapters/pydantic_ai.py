"""One graph as a toolset of pydantic-ai: `palimpsest-memory[pydantic-ai]`.

    agent = Agent(model, toolsets=[memory_toolset(Memory(client, "mara"))])

Where each user has a graph, make the toolset in a function: `@agent.toolset` gives it the run's dependencies.
"""

from typing import Any

from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.toolsets import FunctionToolset

from palimpsest.memory import Memory
from palimpsest.tools import INSTRUCTIONS, NotDone, Tools, told_as


def memory_toolset(memory: Memory, *, id: str = "palimpsest") -> FunctionToolset[Any]:
    """What a model may do with a graph: remember, recall, timeline, what_changed, forget, about_user.

    A mistake in the arguments is told to the model, to be corrected; anything else that fails, such as a
    server that can't be reached, as a tool that failed: the run goes on. Take tools away by `.filtered`.
    """
    tools = Tools(memory)
    offered = (
        tools.remember, tools.recall, tools.timeline, tools.what_changed, tools.forget, tools.about_user
    )  # fmt: skip
    return FunctionToolset([told_as(tool, _error) for tool in offered], id=id, instructions=INSTRUCTIONS)


def _error(why: NotDone) -> Exception:
    return ModelRetry(str(why)) if why.correctable else ToolFailed(str(why))
