"""Programs of the house: stubs from protos, what a machine lacks."""
