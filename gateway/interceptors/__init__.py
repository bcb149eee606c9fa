"""The chain that every call passes, in a fixed order."""
