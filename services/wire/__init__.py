"""Domain values to and from the messages between services."""
