"""Checks of what runs Palimpsest on Kubernetes."""
