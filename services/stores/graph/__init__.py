"""The graph port: statements, their records and spans, and walks over them."""
