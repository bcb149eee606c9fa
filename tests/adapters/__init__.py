"""Adapters against the frameworks that they are for."""
