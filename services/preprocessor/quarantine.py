"""Quarantine: chunks of a distrusted source that speak to this memory instead of telling something.

They are kept, and shown to nobody but who lists them: no model reads them, no search finds them. The whole
chunk is held back, as what surrounds a smuggled order is not worth more than the order.
"""

from dataclasses import replace

from services.domain.instructions import instruction_spans
from services.preprocessor.draft import Draft


def held_back(draft: Draft) -> Draft:
    """The draft with each chunk held back of which a sentence is shaped like an order to this memory."""
    held = {episode.id for episode in draft.episodes if instruction_spans(episode.text)}
    # What begins a message stands behind its speaker's name in the chunk.
    held |= {passage.episode for passage in draft.passages if instruction_spans(passage.text)}
    if not held:
        return draft
    return replace(
        draft,
        episodes=[replace(one, held=True) if one.id in held else one for one in draft.episodes],
        passages=[replace(one, held=True) if one.episode in held else one for one in draft.passages],
    )
