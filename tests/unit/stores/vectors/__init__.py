"""Tests of the vector store's parts."""
