"""Revisions of the gateway's stores."""
