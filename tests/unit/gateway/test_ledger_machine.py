"""The ledger against an independent model: any sequence of movements, repeated, refused, or too late."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlalchemy import select

from gateway.credits.audit import audit
from gateway.credits.books import Books
from gateway.credits.journal import open_accounts
from gateway.credits.ledger import Ledger
from gateway.credits.money import MicroCredits
from gateway.credits.values import HoldId
from gateway.store.clock import SkewedClock
from gateway.store.schema import LEDGER_SCHEMA
from gateway.store.tables import accounts
from services.domain.errors import ServiceError
from services.domain.scope import TenantId
from services.stores.sql.database import Database
from services.stores.sql.engine import sqlite_engine
from services.stores.sql.isolation import Across
from services.stores.sql.migrations import upgrade
from tests.unit.gateway.ledger_model import Model, Refused

TENANTS = st.sampled_from(["acme", "globex"])
# Few names, so that they meet; a hold's name begins with its owner's.
HOLDS = st.sampled_from(["acme-1", "acme-2", "acme-3", "globex-1", "globex-2"])
KEYS = st.sampled_from(["k1", "k2", "k3"])
STEPS = st.sampled_from(["s1", "s2", "s3"])
AMOUNTS = st.integers(0, 60)
POSITIVE = st.integers(1, 60)
# No sum of skips equals a time to live: what real seconds pass can't decide an expiry.
LIVES = st.sampled_from([100, 250])
SKIPS = st.sampled_from([60, 170, -37.7])
"""Clocks are also set back."""


def owner_of(hold: str) -> str:
    return hold.partition("-")[0]


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.clock = SkewedClock()
        self.loop = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.database = self.loop.run(self._database())
        self.ledger = Ledger(self.database, self.clock)

    async def _database(self) -> Database:
        engine = sqlite_engine(Path(self.folder.name) / "ledger.db")
        await upgrade(engine, LEDGER_SCHEMA)
        database = Database(engine, "ledger")
        async with database.write(Across("test")) as connection:
            for tenant in ("acme", "globex"):
                await open_accounts(connection, TenantId(tenant))
        return database

    def both(self, expected: Callable[[], Any], deed: Callable[[Books], Awaitable[Any]]) -> None:
        """Does a deed in the model and in the ledger: the same answer, or the same refusal."""

        async def perform() -> Any:
            async with self.database.write(Across("test")) as connection:
                return await deed(self.ledger.within(connection))

        try:
            answer: Any = expected()
        except Refused as refused:
            answer = refused.name
        try:
            got: Any = self.loop.run(perform())
        except ServiceError as error:
            got = type(error).__name__
        if isinstance(answer, str) or isinstance(got, str):
            assert got == answer
        elif answer is not None:
            assert getattr(got, "settled", got) == answer

    @rule(tenant=TENANTS, key=KEYS, amount=POSITIVE)
    def grant(self, tenant: str, key: str, amount: int) -> None:
        self.both(
            lambda: self.model.grant(tenant, key, amount),
            lambda books: books.grant(TenantId(tenant), key, MicroCredits(amount), ""),
        )

    @rule(tenant=TENANTS, key=KEYS, amount=AMOUNTS)
    def charge(self, tenant: str, key: str, amount: int) -> None:
        self.both(
            lambda: self.model.charge(tenant, key, amount),
            lambda books: books.charge(TenantId(tenant), key, MicroCredits(amount), "", "v1"),
        )

    @rule(hold=HOLDS, ceiling=AMOUNTS, seconds=LIVES)
    def hold(self, hold: str, ceiling: int, seconds: int) -> None:
        tenant = TenantId(owner_of(hold))
        self.both(
            lambda: self.model.hold(tenant, hold, ceiling, seconds),
            lambda books: books.hold(
                tenant, HoldId(hold), MicroCredits(ceiling), seconds, price_version="v1"
            ),
        )

    @rule(hold=HOLDS, step=STEPS, amount=AMOUNTS)
    def spend(self, hold: str, step: str, amount: int) -> None:
        self.both(
            lambda: self.model.spend(hold, step, amount),
            lambda books: books.spend(TenantId(owner_of(hold)), HoldId(hold), step, MicroCredits(amount)),
        )

    @rule(hold=HOLDS, seconds=LIVES)
    def renew(self, hold: str, seconds: int) -> None:
        self.both(
            lambda: self.model.renew(hold, seconds),
            lambda books: books.renew(TenantId(owner_of(hold)), HoldId(hold), seconds),
        )

    @rule(hold=HOLDS, amount=AMOUNTS)
    def settle(self, hold: str, amount: int) -> None:
        self.both(
            lambda: self.model.settle(hold, amount),
            lambda books: books.settle(TenantId(owner_of(hold)), HoldId(hold), MicroCredits(amount)),
        )

    @rule(hold=HOLDS)
    def void(self, hold: str) -> None:
        self.both(
            lambda: self.model.void(hold),
            lambda books: books.void(TenantId(owner_of(hold)), HoldId(hold), ""),
        )

    @rule(hold=HOLDS, key=KEYS, amount=POSITIVE)
    def refund(self, hold: str, key: str, amount: int) -> None:
        self.both(
            lambda: self.model.refund(hold, key, amount),
            lambda books: books.refund(TenantId(owner_of(hold)), HoldId(hold), key, MicroCredits(amount), ""),
        )

    @rule(hold=HOLDS, step=STEPS, amount=AMOUNTS)
    def spend_of_the_wrong_tenant(self, hold: str, step: str, amount: int) -> None:
        other = "globex" if owner_of(hold) == "acme" else "acme"

        def refused() -> None:
            raise Refused("HoldExpired")

        self.both(
            refused, lambda books: books.spend(TenantId(other), HoldId(hold), step, MicroCredits(amount))
        )

    @rule(seconds=SKIPS)
    def time_passes(self, seconds: float) -> None:
        self.clock.skew_seconds += seconds
        self.model.now += seconds

    @rule()
    def sweep(self) -> None:
        assert self.loop.run(self.ledger.sweep()) == self.model.sweep()

    @invariant()
    def balances_are_the_models(self) -> None:
        assert self.loop.run(self._balances()) == {
            (owner, account): getattr(self.model, account)(owner) * sign
            for owner in ("acme", "globex")
            for account, sign in (("available", 1), ("held", 1), ("goodwill", -1))
        }

    async def _balances(self) -> dict[tuple[str, str], int]:
        async with self.database.read(Across("test")) as connection:
            rows = await connection.execute(
                select(accounts).where(accounts.c.account.in_(["available", "held", "goodwill"]))
            )
            return {(row.tenant, row.account): row.balance for row in rows}

    def teardown(self) -> None:
        try:
            assert self.loop.run(audit(self.database, self.clock)) == [] or self._only_late_holds()
        finally:
            self.loop.run(self.database.close())
            self.loop.close()
            self.folder.cleanup()

    def _only_late_holds(self) -> bool:
        """Time may have passed without a sweep: the audit then names those holds, and nothing else."""
        found = self.loop.run(audit(self.database, self.clock))
        return {finding.invariant for finding in found} == {"no_hold_outlives_its_time"}


TestLedgerMachine = LedgerMachine.TestCase
# An example is twenty transactions and their checks: a quarter of the examples of a pure law.
TestLedgerMachine.settings = settings(
    max_examples=max(10, (settings.default or settings()).max_examples // 8), stateful_step_count=20
)
