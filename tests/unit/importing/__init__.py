"""Importing: readers, report and sending."""
