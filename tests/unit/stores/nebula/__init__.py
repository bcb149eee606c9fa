"""Tests of the NebulaGraph store's parts."""
