"""The runtimes without their processes."""
