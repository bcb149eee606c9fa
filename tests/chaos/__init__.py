"""Tests that kill, stop and starve what is running."""
