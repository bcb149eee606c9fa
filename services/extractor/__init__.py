"""Asks the models what a text says; owns no rows."""
