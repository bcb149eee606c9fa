"""Servicers of the public API: from messages to stores and services, and back."""
