"""Errors of the vector store alone; the others are in services/stores/errors.py."""

from services.stores.errors import StoreError, StoreUnavailable


class EmbedderDiffers(StoreUnavailable):
    """The vectors in use were made by another embedder, so searching or adding to them would mix the two.

    `live` and `ours` are the fingerprints of both. Repeating helps once an operator has embedded anew, or
    this process is restarted with the embedder in use.
    """

    def __init__(self, live: str, ours: str) -> None:
        StoreError.__init__(
            self,
            f"the vectors store is in use with the embedder {live}, and this process has {ours}: "
            "run `palimpsest-admin reembed`, or start with the embedder in use",
        )
        self.component = "vectors"
        self.live = live
        self.ours = ours


class NotErased(StoreError):
    """Rows of an erased scope are still there: somebody wrote them meanwhile. Erasing again helps."""
