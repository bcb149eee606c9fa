"""The console: a web page over one server, and the small HTTP process that serves it.

It is a client like any other: what it shows it asks the gateway for, with the key of whoever looks.
"""
