"""The graph in NebulaGraph 3.6 to 3.8. Nothing outside this folder imports nebula3."""

from services.stores.graph.nebula.bootstrap import bootstrap
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore

__all__ = ["NebulaGraphStore", "NebulaSettings", "bootstrap"]
