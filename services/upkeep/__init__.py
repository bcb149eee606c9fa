"""Upkeep of the stores, over their ports alone: finding and mending differences, copies, backups."""
