"""Adapters: a graph as memory of frameworks for agents, each behind an extra of its name."""
