"""Mounts the services on gRPC: in one process or on Ray Serve."""
