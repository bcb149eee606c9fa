"""One suite a port, which every implementation passes."""
