"""The graph in NebulaGraph 3.6 to 3.8. Nothing outside this folder imports nebula3.

The store is in store.py, what makes a cluster ready for it in bootstrap.py, their settings in settings.py.
"""
