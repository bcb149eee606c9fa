"""Every SQL schema of the product, by component."""

from gateway.store.schema import LEDGER_SCHEMA, PROGRESS_SCHEMA
from services.stores.graph.sql import schema as graph
from services.stores.memory.sql import schema as memory

SCHEMAS = {
    schema.component: schema for schema in (graph.SCHEMA, memory.SCHEMA, LEDGER_SCHEMA, PROGRESS_SCHEMA)
}
