"""Hot scopes: one graph as arrays in memory, read by the same methods as the stores that it was loaded from."""
