"""The memory port: documents, episodes, passages and voice aspects."""
