"""Hot scopes: one graph as arrays in memory, read by the methods of the stores that it is loaded from."""
