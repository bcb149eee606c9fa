"""Turns a text into versions, episodes and passages."""
