"""The ports to the stores, and their implementations."""
