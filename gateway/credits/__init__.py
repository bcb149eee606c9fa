"""Credits: a double-entry ledger with two-phase holds, prices with versions, and its audit."""
