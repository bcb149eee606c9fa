"""The graph in NebulaGraph 3.6 to 3.8. Nothing outside this folder imports nebula3."""
