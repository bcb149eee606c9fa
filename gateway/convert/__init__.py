"""Public messages to and from internal ones. The two are kept apart so that each can change alone."""
