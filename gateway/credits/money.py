"""Money: integer micro-credits, and price tables whose version a hold pins."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

MicroCredits = NewType("MicroCredits", int)
"""A millionth of a credit. Never a float."""

MAX_AMOUNT = MicroCredits(10**15)
"""The most that one movement may carry: a thousand million credits, far from the end of an int64."""


class PriceItem(StrEnum):
    """What a price is for. Names as in palimpsest.v1.PriceItem."""

    INGEST_THOUSAND_TOKENS = "INGEST_THOUSAND_TOKENS"
    INGEST_MINIMUM = "INGEST_MINIMUM"
    ASSERTED_RECORD = "ASSERTED_RECORD"
    RECALL = "RECALL"


@dataclass(frozen=True, slots=True)
class PriceTable:
    """All prices under one version; an item that is absent costs nothing."""

    version: str
    prices: Mapping[PriceItem, MicroCredits]

    def price(self, item: PriceItem) -> MicroCredits:
        return self.prices.get(item, MicroCredits(0))

    @property
    def ingest_minimum(self) -> MicroCredits:
        return self.price(PriceItem.INGEST_MINIMUM)

    @property
    def recall(self) -> MicroCredits:
        return self.price(PriceItem.RECALL)

    def ingest(self, tokens: int) -> MicroCredits:
        """What understanding a text of so many tokens costs, rounded up, at least the minimum."""
        assert tokens >= 0
        exact = -(-tokens * self.price(PriceItem.INGEST_THOUSAND_TOKENS) // 1000)
        return MicroCredits(max(exact, self.ingest_minimum))

    def asserted(self, records: int) -> MicroCredits:
        """What so many claims, ends and denials cost."""
        assert records >= 0
        return MicroCredits(records * self.price(PriceItem.ASSERTED_RECORD))


DEFAULT_PRICES = PriceTable(
    version="v1",
    prices={
        PriceItem.INGEST_THOUSAND_TOKENS: MicroCredits(10_000),
        PriceItem.INGEST_MINIMUM: MicroCredits(1_000),
        PriceItem.ASSERTED_RECORD: MicroCredits(100),
        PriceItem.RECALL: MicroCredits(0),
    },
)
"""What ships: a hundred thousand tokens for a credit; recall is free."""
