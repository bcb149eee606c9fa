"""The ledger: holds, spends, settlements, refunds."""
