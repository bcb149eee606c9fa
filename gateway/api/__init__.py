"""The public servicers: request in, command, answer out."""
