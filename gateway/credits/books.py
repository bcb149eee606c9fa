"""The ledger's operations, inside a caller's transaction.

hold(ceiling) → spend(step)… → settle(charge) once | void | expire. Repeating any of them changes nothing.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.credits.journal import post
from gateway.credits.money import MicroCredits
from gateway.credits.values import (
    NO_COURTESY,
    Account,
    Balance,
    Courtesy,
    EntryKind,
    Hold,
    HoldId,
    HoldState,
    Line,
    Movement,
)
from gateway.errors import (
    ChargeNotFound,
    HoldExpired,
    RequestIdReused,
    TenantNotFound,
    ValidationFailed,
    Violation,
)
from gateway.store.clock import DAY, DatabaseClock
from gateway.store.once import insert_once
from gateway.store.tables import accounts, goodwill_days, holds, journal_entries, journal_groups, spends
from services.domain.instants import Instant
from services.domain.scope import TenantId
from services.stores.sql.rows import insert_new

# How a hold reads in the journal when all of it is given back.
_GIVEN_BACK = {
    HoldState.SETTLED: EntryKind.VOID,
    HoldState.VOIDED: EntryKind.VOID,
    HoldState.EXPIRED: EntryKind.EXPIRE,
}


class Books:
    """The ledger within one transaction of `connection`; whoever opened it commits."""

    def __init__(self, connection: AsyncConnection, clock: DatabaseClock) -> None:
        self._connection = connection
        self._clock = clock

    async def balance(self, tenant: TenantId) -> Balance:
        """What the tenant has now. Raises TenantNotFound."""
        found = await self._connection.execute(
            select(accounts.c.account, accounts.c.balance, self._clock.now().label("now")).where(
                accounts.c.tenant == tenant
            )
        )
        rows = {row.account: row for row in found}
        if not rows:
            raise TenantNotFound(tenant)
        available = rows[Account.AVAILABLE]
        return Balance(
            MicroCredits(available.balance),
            MicroCredits(rows[Account.HELD].balance),
            Instant(available.now),
        )

    async def grant(
        self, tenant: TenantId, request_key: str, amount: MicroCredits, reason: str
    ) -> tuple[int, bool]:
        """Issues credits. Answers the journal group, and whether this call wrote it.

        Idempotent by `request_key`. Raises RequestIdReused (another payload), TenantNotFound.
        """
        assert amount > 0
        movement = Movement(f"grant:{request_key}", request_key=request_key, reason=reason)
        lines = [
            Line(Account.AVAILABLE, EntryKind.GRANT, amount),
            Line(Account.ISSUED, EntryKind.GRANT, MicroCredits(-amount)),
        ]
        return await self._once(tenant, movement, lines)

    async def charge(
        self, tenant: TenantId, request_key: str, amount: MicroCredits, reason: str, price_version: str
    ) -> tuple[int, bool]:
        """Charges at once, without a hold. Idempotent by `request_key`. Raises InsufficientCredits."""
        assert amount >= 0
        movement = Movement(f"charge:{request_key}", "", request_key, reason, price_version)
        lines = [
            Line(Account.AVAILABLE, EntryKind.CHARGE, MicroCredits(-amount)),
            Line(Account.REVENUE, EntryKind.CHARGE, amount),
        ]
        return await self._once(tenant, movement, lines)

    async def hold(
        self,
        tenant: TenantId,
        hold: HoldId,
        ceiling: MicroCredits,
        ttl_seconds: float,
        *,
        price_version: str,
        job: str = "",
        request_key: str = "",
    ) -> None:
        """Sets credits aside. Idempotent by `hold`. Raises InsufficientCredits, TenantNotFound."""
        assert ceiling >= 0
        job = job or hold
        movement = Movement(f"hold:{hold}", job, request_key, price_version=price_version)
        lines = [
            Line(Account.AVAILABLE, EntryKind.HOLD, MicroCredits(-ceiling)),
            Line(Account.HELD, EntryKind.HOLD, ceiling),
        ]
        if await post(self._connection, self._clock, tenant, movement, lines) is None:
            return
        await self._connection.execute(
            insert(holds).values(
                id=hold,
                tenant=tenant,
                job=job,
                request_key=request_key,
                state=HoldState.OPEN,
                ceiling=ceiling,
                spent=0,
                settled=0,
                goodwill=0,
                refunded=0,
                price_version=price_version,
                created_at=self._clock.now(),
                expires_at=self._clock.after(ttl_seconds),
            )
        )

    async def find(self, tenant: TenantId, hold: HoldId) -> Hold | None:
        """A hold of the tenant, as it stands."""
        found = await self._connection.execute(
            select(holds).where(holds.c.id == hold, holds.c.tenant == tenant)
        )
        row = found.one_or_none()
        return None if row is None else hold_of(row._asdict())

    async def spend(
        self, tenant: TenantId, hold: HoldId, step: str, amount: MicroCredits, tokens: int = 0
    ) -> MicroCredits:
        """Records what a step of the hold's job cost; it may pass the ceiling, what is settled never does.

        `tokens` of text is what it understood, for usage.

        Idempotent by (job, step): a repeated step costs what it cost first, which is answered. Raises
        HoldExpired when the hold has ended, so that a process that lost its work changes nothing.
        """
        assert amount >= 0
        open_one = await self._connection.execute(
            update(holds)
            .where(holds.c.id == hold, holds.c.tenant == tenant, holds.c.state == HoldState.OPEN)
            .values(spent=holds.c.spent + amount)
            .returning(holds.c.job)
        )
        job = open_one.scalar_one_or_none()
        if job is None:
            return await self._spent_before(tenant, hold, step)
        row = {
            "job": job,
            "step": step,
            "hold": hold,
            "amount": amount,
            "created_at": self._clock.now(),
            "tokens": tokens or None,
        }
        if await insert_once(self._connection, spends, row) is not None:
            return amount
        # The step was there: the row of the hold, locked since the first update, takes it back.
        await self._connection.execute(
            update(holds).where(holds.c.id == hold).values(spent=holds.c.spent - amount)
        )
        return await self._spent_before(tenant, hold, step)

    async def renew(self, tenant: TenantId, hold: HoldId, ttl_seconds: float) -> None:
        """Lets an open hold live on from now. Raises HoldExpired when it has ended."""
        renewed = await self._connection.execute(
            update(holds)
            .where(holds.c.id == hold, holds.c.tenant == tenant, holds.c.state == HoldState.OPEN)
            .values(expires_at=self._clock.after(ttl_seconds))
        )
        if not renewed.rowcount:
            raise HoldExpired

    async def settle(
        self,
        tenant: TenantId,
        hold: HoldId,
        charge: MicroCredits,
        *,
        courtesy: Courtesy = NO_COURTESY,
        reason: str = "",
    ) -> Hold:
        """Ends a hold: charges `charge`, never above what was spent or held, and gives the rest back.

        What was spent and is not charged is the platform's goodwill; of that, `courtesy` is capped by day.
        Idempotent: a settled hold answers what it came to. Raises HoldExpired when it ended otherwise.
        """
        assert charge >= 0
        return await self._end(tenant, hold, HoldState.SETTLED, charge, courtesy, reason)

    async def void(self, tenant: TenantId, hold: HoldId, reason: str) -> Hold:
        """Ends a hold and gives all of it back. Idempotent. Raises HoldExpired when it ended otherwise."""
        return await self._end(tenant, hold, HoldState.VOIDED, MicroCredits(0), NO_COURTESY, reason)

    async def expire(self, tenant: TenantId, hold: HoldId) -> Hold:
        """Ends a hold whose time has run out (the caller saw to that), as `void` does."""
        return await self._end(tenant, hold, HoldState.EXPIRED, MicroCredits(0), NO_COURTESY, "TTL")

    async def refund(
        self, tenant: TenantId, job: str, request_key: str, amount: MicroCredits, reason: str
    ) -> tuple[int, bool]:
        """Gives back of what a job was charged, in all its attempts; all refunds together never above it.

        Of a hold without a job the job is the hold's own id. Idempotent by `request_key`. Raises
        ChargeNotFound, ValidationFailed (more than is left), RequestIdReused (another payload).
        """
        assert amount > 0
        charged = await self._charges(tenant, job)
        if not charged:
            raise ChargeNotFound(job)
        movement = Movement(f"refund:{request_key}", job, request_key, reason, charged[0].price_version)
        lines = [
            Line(Account.AVAILABLE, EntryKind.REFUND, amount),
            Line(Account.REVENUE, EntryKind.REFUND, MicroCredits(-amount)),
        ]
        group, fresh = await self._once(tenant, movement, lines)
        if fresh:
            await self._take_back(tenant, job, amount)
        return group, fresh

    async def _take_back(self, tenant: TenantId, job: str, amount: MicroCredits) -> None:
        """Counts a refund with the charges that it is of, the first charge first."""
        left = int(amount)
        # Read after the account was changed: whoever refunds beside us waits there, or is done.
        for hold in await self._charges(tenant, job):
            part = min(left, hold.settled - hold.refunded)
            if part:
                await self._connection.execute(
                    update(holds).where(holds.c.id == hold.id).values(refunded=holds.c.refunded + part)
                )
                left -= part
        if left:
            raise ValidationFailed(
                Violation("amount_micros", "more than is left of the charge", "refund.within_charge")
            )

    async def _charges(self, tenant: TenantId, job: str) -> list[Hold]:
        found = await self._connection.execute(
            select(holds)
            .where(holds.c.tenant == tenant, holds.c.job == job, holds.c.state == HoldState.SETTLED)
            .order_by(holds.c.created_at, holds.c.id)
        )
        return [hold_of(row._asdict()) for row in found]

    async def _once(self, tenant: TenantId, movement: Movement, lines: list[Line]) -> tuple[int, bool]:
        group = await post(self._connection, self._clock, tenant, movement, lines)
        if group is not None:
            return group, True
        found = await self._connection.execute(
            select(journal_groups, journal_entries.c.amount)
            .outerjoin(journal_entries, journal_entries.c.group == journal_groups.c.id)
            .where(journal_groups.c.tenant == tenant, journal_groups.c.key == movement.key)
            .order_by(journal_entries.c.id)
            .limit(1)
        )
        first = found.one()
        if (first.job, first.reason, first.amount or 0) != (movement.job, movement.reason, lines[0].amount):
            raise RequestIdReused(movement.request_key)
        return int(first.id), False

    async def _spent_before(self, tenant: TenantId, hold: HoldId, step: str) -> MicroCredits:
        found = await self._connection.execute(
            select(spends.c.amount)
            .join(holds, holds.c.job == spends.c.job)
            .where(holds.c.id == hold, holds.c.tenant == tenant, spends.c.step == step)
        )
        amount = found.scalar_one_or_none()
        if amount is None:
            raise HoldExpired
        return MicroCredits(amount)

    async def _end(
        self,
        tenant: TenantId,
        hold: HoldId,
        state: HoldState,
        charge: MicroCredits,
        courtesy: Courtesy,
        reason: str,
    ) -> Hold:
        ended = await self._connection.execute(
            update(holds)
            .where(holds.c.id == hold, holds.c.tenant == tenant, holds.c.state == HoldState.OPEN)
            .values(state=state, ended_at=self._clock.now())
            .returning(holds)
        )
        row = ended.one_or_none()
        if row is None:
            before = await self.find(tenant, hold)
            if before is None or before.state is not state:
                raise HoldExpired
            return before
        was = hold_of(row._asdict())
        settled = await self._charged(tenant, was, charge, courtesy)
        goodwill = MicroCredits(was.spent - settled)
        final = await self._connection.execute(
            update(holds)
            .where(holds.c.id == hold)
            .values(settled=settled, goodwill=goodwill)
            .returning(holds)
        )
        movement = Movement(f"end:{hold}", was.job, was.request_key, reason, was.price_version)
        released_as = _GIVEN_BACK[state] if not settled else EntryKind.RELEASE
        lines = ending_lines(was.ceiling, settled, goodwill, released_as)
        await post(self._connection, self._clock, tenant, movement, lines)
        return hold_of(final.one()._asdict())

    async def _charged(
        self, tenant: TenantId, hold: Hold, charge: MicroCredits, courtesy: Courtesy
    ) -> MicroCredits:
        most = min(hold.spent, hold.ceiling)
        charged = min(charge, most)
        asked = min(courtesy.amount, hold.spent - charged)
        if asked <= 0:
            return MicroCredits(charged)
        now = (await self._connection.execute(select(self._clock.now()))).scalar_one()
        key = {"tenant": tenant, "day": now // DAY}
        await insert_new(self._connection, goodwill_days, [{**key, "amount": 0}])
        given = await self._connection.execute(
            update(goodwill_days)
            .where(
                goodwill_days.c.tenant == tenant,
                goodwill_days.c.day == key["day"],
                goodwill_days.c.amount + asked <= courtesy.cap_per_day,
            )
            .values(amount=goodwill_days.c.amount + asked)
        )
        if given.rowcount:
            return MicroCredits(charged)
        return MicroCredits(min(charged + min(courtesy.minimum, asked), most))


def ending_lines(
    ceiling: MicroCredits, settled: MicroCredits, goodwill: MicroCredits, released_as: EntryKind
) -> list[Line]:
    """What the end of a hold moves: the charge to revenue, the rest back, and uncharged work to goodwill."""
    rest = MicroCredits(ceiling - settled)
    return [
        Line(Account.HELD, EntryKind.SETTLE, MicroCredits(-settled)),
        Line(Account.HELD, released_as, MicroCredits(-rest)),
        Line(Account.AVAILABLE, released_as, rest),
        Line(Account.REVENUE, EntryKind.SETTLE, settled),
        Line(Account.REVENUE, EntryKind.GOODWILL, goodwill),
        Line(Account.GOODWILL, EntryKind.GOODWILL, MicroCredits(-goodwill)),
    ]


def hold_of(row: Mapping[str, Any]) -> Hold:
    """A hold from its columns by name."""
    return Hold(
        id=HoldId(row["id"]),
        job=row["job"],
        request_key=row["request_key"],
        state=HoldState(row["state"]),
        ceiling=MicroCredits(row["ceiling"]),
        spent=MicroCredits(row["spent"]),
        settled=MicroCredits(row["settled"]),
        goodwill=MicroCredits(row["goodwill"]),
        refunded=MicroCredits(row["refunded"]),
        price_version=row["price_version"],
        expires_at=Instant(row["expires_at"]),
    )
