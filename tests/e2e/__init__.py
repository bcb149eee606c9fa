"""Tests through the gateway, from another process."""
