"""The durable pipeline that takes a text through the services."""
