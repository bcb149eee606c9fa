"""Laws of time over the whole store, and the oracle that they are held to."""
