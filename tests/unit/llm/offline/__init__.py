"""Tests of the offline engine: what its rules draw from English."""
