"""The ports to language and embedding models, and their engines."""
