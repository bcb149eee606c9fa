"""Small real classes and servers that stand in for what the tests cannot have."""
