"""The command line, against a scripted server."""
