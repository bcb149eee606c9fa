"""The client of Palimpsest: SDK, command line and generated stubs."""

from palimpsest.client import Client, Patience
from palimpsest.memory import Memory, Recalled, Said

__all__ = ["Client", "Memory", "Patience", "Recalled", "Said"]
