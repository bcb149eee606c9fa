"""Revisions of the progress of jobs, the first one first."""
