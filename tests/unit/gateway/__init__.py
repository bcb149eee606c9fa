"""The gateway, by itself."""
