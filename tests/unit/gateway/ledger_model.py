"""What the ledger should do, told again in plain Python: no SQL, no journal, no code of the gateway's."""

from dataclasses import dataclass, field


class Refused(Exception):
    """The ledger must refuse; `name` is the class of its error."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass
class ModelHold:
    owner: str
    ceiling: int
    expires: float
    spends: dict[str, int] = field(default_factory=dict)
    state: str = "OPEN"
    settled: int = 0
    refunded: int = 0


@dataclass
class Model:
    """Balances are sums over what happened, computed anew each time."""

    granted: dict[tuple[str, str], int] = field(default_factory=dict)
    charged: dict[tuple[str, str], int] = field(default_factory=dict)
    refunds: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    holds: dict[str, ModelHold] = field(default_factory=dict)
    now: float = 0

    def held(self, owner: str) -> int:
        return sum(hold.ceiling for hold in self._of(owner) if hold.state == "OPEN")

    def revenue(self, owner: str) -> int:
        """What the tenant paid in the end."""
        charged = sum(amount for (tenant, _), amount in self.charged.items() if tenant == owner)
        return charged + sum(hold.settled - hold.refunded for hold in self._of(owner))

    def goodwill(self, owner: str) -> int:
        """Work that was done and never paid."""
        ended = [hold for hold in self._of(owner) if hold.state != "OPEN"]
        return sum(sum(hold.spends.values()) - hold.settled for hold in ended)

    def available(self, owner: str) -> int:
        granted = sum(amount for (tenant, _), amount in self.granted.items() if tenant == owner)
        return granted - self.held(owner) - self.revenue(owner)

    def grant(self, owner: str, key: str, amount: int) -> None:
        if self.granted.setdefault((owner, key), amount) != amount:
            raise Refused("RequestIdReused")

    def charge(self, owner: str, key: str, amount: int) -> None:
        known = self.charged.get((owner, key))
        if known is None:
            self._afford(owner, amount)
            self.charged[owner, key] = amount
        elif known != amount:
            raise Refused("RequestIdReused")

    def hold(self, owner: str, name: str, ceiling: int, seconds: float) -> None:
        if name not in self.holds:
            self._afford(owner, ceiling)
            self.holds[name] = ModelHold(owner, ceiling, self.now + seconds)

    def spend(self, name: str, step: str, amount: int) -> int:
        hold = self._hold(name)
        if step not in hold.spends:
            self._open(hold)
            hold.spends[step] = amount
        return hold.spends[step]

    def renew(self, name: str, seconds: float) -> None:
        hold = self._hold(name)
        self._open(hold)
        hold.expires = self.now + seconds

    def settle(self, name: str, charge: int) -> int:
        hold = self._hold(name)
        if hold.state != "SETTLED":
            self._open(hold)
            hold.state = "SETTLED"
            hold.settled = min(charge, sum(hold.spends.values()), hold.ceiling)
        return hold.settled

    def void(self, name: str) -> None:
        hold = self._hold(name)
        if hold.state != "VOIDED":
            self._open(hold)
            hold.state = "VOIDED"

    def refund(self, name: str, key: str, amount: int) -> None:
        hold = self.holds.get(name)
        if hold is None or hold.state != "SETTLED":
            raise Refused("ChargeNotFound")
        known = self.refunds.get((hold.owner, key))
        if known is not None:
            if known != (name, amount):
                raise Refused("RequestIdReused")
        elif hold.refunded + amount > hold.settled:
            raise Refused("ValidationFailed")
        else:
            self.refunds[hold.owner, key] = (name, amount)
            hold.refunded += amount

    def sweep(self) -> int:
        due = [hold for hold in self.holds.values() if hold.state == "OPEN" and hold.expires <= self.now]
        for hold in due:
            hold.state = "EXPIRED"
        return len(due)

    def _of(self, owner: str) -> list[ModelHold]:
        return [hold for hold in self.holds.values() if hold.owner == owner]

    def _afford(self, owner: str, amount: int) -> None:
        if amount > self.available(owner):
            raise Refused("InsufficientCredits")

    def _hold(self, name: str) -> ModelHold:
        if name not in self.holds:
            raise Refused("HoldExpired")
        return self.holds[name]

    def _open(self, hold: ModelHold) -> None:
        if hold.state != "OPEN":
            raise Refused("HoldExpired")
