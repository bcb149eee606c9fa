"""The shared SQL helper, without a database."""
