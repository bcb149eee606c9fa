"""The resolver's pure parts."""
