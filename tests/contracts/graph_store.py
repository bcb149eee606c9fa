"""What every graph store must do: the whole suite, and a law that holds it to a model."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.stores.graph.port import GraphStore
from tests.builders import Maker, a_scope
from tests.contracts.graph_base import Capability, GraphSuite
from tests.contracts.graph_erasing import GraphErasing
from tests.contracts.graph_isolation import GraphIsolation
from tests.contracts.graph_lists import GraphLists
from tests.contracts.graph_model import Comparison, asked, entity_filters, filters, forgettings, histories
from tests.contracts.graph_time import GraphTime
from tests.contracts.graph_walks import GraphWalks
from tests.contracts.graph_writes import GraphWrites
from tests.doubles.naive_graph import NaiveGraph
from tests.examples import one_in

__all__ = ["Capability", "GraphStoreContract", "GraphSuite"]


class GraphStoreContract(GraphWrites, GraphTime, GraphLists, GraphWalks, GraphErasing, GraphIsolation):
    """Subclasses give `make_store` and `place`, and name what they lack, with a reason."""

    @pytest.mark.timeout(600)
    # All examples of a test share its store; each begins with an empty scope. The law is one for all stores.
    @settings(
        # An example is some two hundred calls of the store: a twentieth of what other laws get.
        max_examples=one_in(20),
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
            HealthCheck.too_slow,
        ],
    )
    @given(data=st.data())
    async def test_any_history_reads_as_the_model_says(self, store: GraphStore, data: st.DataObject) -> None:
        make = Maker(a_scope("history"))
        history = data.draw(histories(make))
        await store.erase(make.scope)
        both = Comparison(make, store, NaiveGraph())
        for commit in history.commits:
            await both.apply(commit)
        for position in history.repeats:
            await both.apply(history.commits[position])
        for _ in range(2):
            at = data.draw(asked(len(history.commits)))
            await both.look(history.statements, at)
            await both.list(data.draw(filters(make)), at, data.draw(st.integers(1, 4)))
            await both.list_entities(
                data.draw(entity_filters(make)), at.known_at, data.draw(st.integers(1, 3))
            )
            together = data.draw(st.sampled_from(["", "ab", "bc", "abc"]))
            await both.walk(at, data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4)), together)
        await both.forget(data.draw(forgettings(history)), history)
        await both.look(history.statements, at)
        await both.list_entities(data.draw(entity_filters(make)), at.known_at, 2)
        await both.apply(history.commits[-1])
        await both.look(history.statements, at)
