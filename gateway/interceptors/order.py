"""The order of the chain, as data: from the request id to validation, then the handler.

What watches stands outside of what refuses; a caller is known before anything is counted for a tenant; the
cheap refusals come before the dear ones; what changed something is kept before the answer goes out.
"""

from dataclasses import dataclass

from gateway.interceptors.authenticate import Authenticate
from gateway.interceptors.chain import Chain, Step
from gateway.interceptors.deadline import DeadlineCap
from gateway.interceptors.keep import KeepCalls
from gateway.interceptors.limits import Admission, TenantLimits
from gateway.interceptors.observe import LogAndTrace, Metrics, RequestIds
from gateway.interceptors.recover import Recover
from gateway.interceptors.validate import Validate

ORDER: tuple[type[Step], ...] = (
    RequestIds,
    LogAndTrace,
    Metrics,
    Recover,
    DeadlineCap,
    Authenticate,
    TenantLimits,
    Admission,
    Validate,
    KeepCalls,
)


@dataclass(frozen=True, slots=True)
class Steps:
    """One step of each kind that needs something to work with."""

    metrics: Metrics
    authenticate: Authenticate
    tenant_limits: TenantLimits
    admission: Admission
    keep: KeepCalls


def chain(steps: Steps) -> Chain:
    """The chain of the gateway."""
    made: list[Step] = [
        RequestIds(),
        LogAndTrace(),
        steps.metrics,
        Recover(),
        DeadlineCap(steps.admission.late),
        steps.authenticate,
        steps.tenant_limits,
        steps.admission,
        Validate(),
        steps.keep,
    ]
    by_kind = {type(step): step for step in made}
    return Chain([by_kind[kind] for kind in ORDER])
