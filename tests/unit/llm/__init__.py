"""Tests of engines, prompts and what models answer."""
