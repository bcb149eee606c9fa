"""The demo: a story told by real calls to a product that runs for it alone."""
