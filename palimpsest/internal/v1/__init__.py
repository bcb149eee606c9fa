"""The API between services: generated from protos/palimpsest/internal/v1 by `make protos`."""
