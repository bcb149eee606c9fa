"""A double of NebulaGraph's graphd: a server on the real wire protocol that knows our store's statements.

It is an independent reading of those statements (services/stores/graph/nebula shares nothing with it) over a
model of its own, and refuses everything else with a syntax error. What it answers is held to recordings of a
real server (tests/golden/nebula).
"""

from tests.doubles.graphd.faults import Fault, FaultKind, Faults
from tests.doubles.graphd.server import Graphd

__all__ = ["Fault", "FaultKind", "Faults", "Graphd"]
