"""Withdrawing: which later version of a document is the first to leave a passage of an earlier one out."""

import asyncio
from collections.abc import Mapping, Sequence

from palimpsest.internal.v1 import values_pb2
from services.domain.ids import DocumentId, PassageId
from services.domain.memory import Passage
from services.domain.scope import Scope
from services.preprocessor.versions import removed
from services.stores.memory.port import TextStore


async def withdrawn(
    text: TextStore, scope: Scope, document: DocumentId, version: int, passages: Mapping[PassageId, Passage]
) -> Sequence[values_pb2.Withdrawal]:
    """For each of `passages` that some version above `version` lacks, the first such version.

    Raises StoreUnavailable.
    """
    heads = await text.version_heads(scope, document) if passages else ()
    waiting = dict(passages)
    found: list[values_pb2.Withdrawal] = []
    for number in sorted(head.version for head in heads if head.version > version):
        following = await text.version(scope, document, number)
        if following is None or not waiting:
            continue
        mine = await text.of_document(scope, document, number)
        left = next((one.id for one in mine if one.deleted_at is None), "")
        for passage in await asyncio.to_thread(removed, list(waiting.values()), following.text):
            del waiting[passage]
            found.append(
                values_pb2.Withdrawal(passage_id=passage, at=following.reference_time, episode_id=left)
            )
    return found
