"""Revisions of the ledger, the first one first."""
