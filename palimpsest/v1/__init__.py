"""The public API: generated from protos/palimpsest/v1 by `make protos`."""
