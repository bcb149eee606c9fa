"""The client of Palimpsest: SDK, command line and generated stubs."""
