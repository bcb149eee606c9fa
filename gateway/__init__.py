"""The gateway: all that speaks to the outside, and the durable ingest pipeline."""
