"""The ledger's values: accounts, kinds of entries, states of holds, and what a settlement came to."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from gateway.credits.money import MicroCredits
from services.domain.instants import Instant

HoldId = NewType("HoldId", str)


class Account(StrEnum):
    """The tenant's own accounts, and its share of the platform's.

    The platform's are kept by tenant, so that tenants never wait for each other's rows; their sums are
    the platform's accounts.
    """

    AVAILABLE = "available"
    HELD = "held"
    ISSUED = "issued"
    REVENUE = "revenue"
    GOODWILL = "goodwill"


TENANT_ACCOUNTS = frozenset({Account.AVAILABLE, Account.HELD})


class EntryKind(StrEnum):
    """Why credits moved. Names as in palimpsest.v1.LedgerEntryKind; GOODWILL is never a tenant's."""

    GRANT = "GRANT"
    HOLD = "HOLD"
    SETTLE = "SETTLE"
    RELEASE = "RELEASE"
    VOID = "VOID"
    EXPIRE = "EXPIRE"
    REFUND = "REFUND"
    CHARGE = "CHARGE"
    GOODWILL = "GOODWILL"


class HoldState(StrEnum):
    """OPEN ends once, in one of the others."""

    OPEN = "OPEN"
    SETTLED = "SETTLED"
    VOIDED = "VOIDED"
    EXPIRED = "EXPIRED"


@dataclass(frozen=True, slots=True)
class Balance:
    """What a tenant has, by the database's clock."""

    available: MicroCredits
    held: MicroCredits
    as_of: Instant


@dataclass(frozen=True, slots=True)
class Hold:
    """Credits set aside. `spent` is what steps cost so far; the rest is set when it ends.

    `spent` = `settled` + `goodwill` once it has ended; `settled` <= `ceiling`; `refunded` <= `settled`.
    """

    id: HoldId
    job: str
    request_key: str
    state: HoldState
    ceiling: MicroCredits
    spent: MicroCredits
    settled: MicroCredits
    goodwill: MicroCredits
    refunded: MicroCredits
    price_version: str
    expires_at: Instant

    @property
    def held(self) -> MicroCredits:
        """Still set aside."""
        return self.ceiling if self.state is HoldState.OPEN else MicroCredits(0)

    @property
    def returned(self) -> MicroCredits:
        """Set aside or charged, and given back."""
        if self.state is HoldState.OPEN:
            return MicroCredits(0)
        return MicroCredits(self.ceiling - self.settled + self.refunded)


@dataclass(frozen=True, slots=True)
class Courtesy:
    """Work that is not charged because it taught nothing: `amount` of it, while the day's cap allows.

    Beyond `cap_per_day` (of the tenant, UTC) the call is charged `minimum` instead.
    """

    amount: MicroCredits
    cap_per_day: MicroCredits
    minimum: MicroCredits


NO_COURTESY = Courtesy(MicroCredits(0), MicroCredits(0), MicroCredits(0))


@dataclass(frozen=True, slots=True)
class Movement:
    """What a journal group is about. `key` names it within the tenant and makes it happen once."""

    key: str
    job: str = ""
    request_key: str = ""
    reason: str = ""
    price_version: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One entry to write: into the account if positive, out of it if negative."""

    account: Account
    kind: EntryKind
    amount: MicroCredits


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal as it was written; never changed."""

    id: int
    group: int
    created_at: Instant
    account: Account
    kind: EntryKind
    amount: MicroCredits
    balance_after: MicroCredits
    job: str
    request_key: str
    reason: str
    price_version: str


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Every field that is set must match; the period is half-open."""

    job: str = ""
    kinds: tuple[EntryKind, ...] = ()
    since: Instant | None = None
    until: Instant | None = None
