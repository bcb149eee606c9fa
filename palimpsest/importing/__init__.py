"""Importing: what other memories exported, read into claims, ends, denials and texts, and sent.

Readers (graphiti, mem0, tables) are pure: files in, records and what becomes of each out. `sending` takes
that to a server, and `report` tells of every record what came of it.
"""
