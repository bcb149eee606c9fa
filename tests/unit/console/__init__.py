"""Tests of the console's bridge and guards, without a browser."""
