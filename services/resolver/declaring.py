"""Declaring: what a tenant says of a predicate becomes a record, and what it changes is derived again.

The statements keep the predicates that they were recorded under; only how these read is another from then on.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from services.domain.errors import ValidationFailed, Violation
from services.domain.ids import RecordId, Revision, derive_id
from services.domain.instants import Instant
from services.domain.lexicon import Lexicon, predicate_id
from services.domain.predicates import Declaration, Declared, spelling
from services.domain.scope import Scope
from services.resolver.change import Draft
from services.resolver.deciding import Action, By, decide
from services.resolver.naming import draft_predicates
from services.stores.graph.port import GraphStore
from services.stores.memory.lexicons import Lexicons
from services.stores.paging import Page

MAX_DERIVED_AGAIN = 20_000
"""Statements that one declaration may derive again: a revision is one value, in memory and in the log."""
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Asking:
    """Who declares, and why. `stem` makes the record's id: one for each call."""

    stem: str
    actor: str
    why: str = ""


class Declaring:
    """Drafts declarations."""

    def __init__(self, graph: GraphStore, lexicons: Lexicons, now: Callable[[], Instant]) -> None:
        self._graph = graph
        self._lexicons = lexicons
        self._now = now

    async def draft(
        self, scope: Scope, known: Revision, revision: Revision, declaration: Declaration, asking: Asking
    ) -> Draft:
        """Empty when that is declared already. Raises ValidationFailed, StoreUnavailable."""
        draft = Draft(revision)
        lexicon = await self._lexicons.at(scope, known)
        asked = spelt(declaration)
        declaration = replace(asked, aliases=tuple(sorted(set(asked.aliases))))
        before = lexicon.declared.get(declaration.name)
        if before is not None and before.declaration == declaration:
            return draft
        check(asked, lexicon)
        made = RecordId(derive_id(scope, "declared", declaration.name, asking.stem))
        draft.declared[made] = Declared(made, declaration, revision)
        if before is not None:
            draft.readings_revoked.add(before.id)
        after = lexicon.after(draft.declared.values(), draft.readings_revoked)
        await draft_predicates(self._graph, scope, draft, [declaration.name])
        await self._again(scope, draft, changed(lexicon, after))
        target = predicate_id(scope, declaration.name)
        decide(scope, draft, self._now(), Action.DECLARE, target, By(asking.actor, asking.why), made)
        return draft

    async def _again(self, scope: Scope, draft: Draft, keys: Iterable[str]) -> None:
        """What reads otherwise; what that is or was tied to, its closure adds. Raises ValidationFailed."""
        for key in sorted(keys):
            position = ""
            while True:
                page = Page(PAGE, position)
                listed = await self._graph.of_predicate(scope, predicate_id(scope, key), None, page)
                draft.again.update(listed.items)
                if len(draft.again) > MAX_DERIVED_AGAIN:
                    what = f"it would change how more than {MAX_DERIVED_AGAIN:,} statements read"
                    raise ValidationFailed(Violation("name", what, "predicate.too_many_statements"))
                position = listed.after
                if not position:
                    break


def spelt(declaration: Declaration) -> Declaration:
    """In canonical spelling, aliases as they were given. Raises ValidationFailed with all that has none."""
    violations: list[Violation] = []

    def form(field: str, name: str) -> str:
        try:
            return spelling(name)
        except ValueError as error:
            violations.append(Violation(field, str(error), "predicate.word"))
            return ""

    name = form("name", declaration.name)
    aliases = [form(f"aliases[{at}]", alias) for at, alias in enumerate(declaration.aliases)]
    inverse = form("inverse", declaration.inverse) if declaration.inverse else None
    for at, alias in enumerate(aliases):
        if alias and alias == name:
            violations.append(Violation(f"aliases[{at}]", "is the name itself", "predicate.own_alias"))
    if violations:
        raise ValidationFailed(*violations)
    return Declaration(name, declaration.cardinality, tuple(aliases), inverse)


def check(declaration: Declaration, lexicon: Lexicon) -> None:
    """Raises ValidationFailed for what contradicts other declarations that count, or itself."""
    name, inverse = declaration.name, declaration.inverse
    others = {key: one.declaration for key, one in lexicon.declared.items() if key != name}
    violations: list[Violation] = []

    def refuse(field: str, what: str, rule: str) -> None:
        violations.append(Violation(field, what, f"predicate.{rule}"))

    for key, other in others.items():
        theirs = set(map(spelling, other.aliases))
        if name in theirs:
            refuse("name", f"is an alias of {key}", "name_is_alias")
        for at, alias in enumerate(declaration.aliases):
            if alias == key:
                refuse(f"aliases[{at}]", f"{alias} is declared itself", "alias_is_declared")
            elif alias in theirs:
                refuse(f"aliases[{at}]", f"{alias} is an alias of {key}", "alias_of_another")
        if inverse and inverse in theirs:
            refuse("inverse", f"is an alias of {key}", "inverse_is_alias")
        _check_inverse(declaration, key, spelling(other.inverse) if other.inverse else None, refuse)
    for this, that in ((name, inverse), (inverse, name)) if inverse else ():
        ships = lexicon.shipped_inverse(this)
        if ships is not None and ships != lexicon.key(that):
            refuse("inverse", f"{ships} is the inverse of {this}", "inverse_ships")
    if inverse in declaration.aliases:
        refuse("inverse", "is one of the aliases", "inverse_is_alias")
    if violations:
        raise ValidationFailed(*{one.field: one for one in reversed(violations)}.values())


def _check_inverse(
    declaration: Declaration, key: str, theirs: str | None, refuse: Callable[[str, str, str], None]
) -> None:
    """Against `key`, declared with the inverse `theirs`: of a pair either may be declared, and both."""
    name, inverse = declaration.name, declaration.inverse
    if theirs is None:
        return
    if theirs in declaration.aliases:
        refuse("aliases", f"{theirs} is the inverse of {key}", "alias_is_inverse")
    taken = theirs == inverse or (inverse == key and theirs != name) or (theirs == name and inverse != key)
    if inverse and taken:
        refuse("inverse", f"{theirs} is the inverse of {key}", "circle_of_inverses")


def changed(before: Lexicon, after: Lexicon) -> set[str]:
    """Keys of predicates whose statements may derive otherwise."""
    names = before.recorded | after.recorded
    return {key for key in names if _meaning(before, key) != _meaning(after, key)}


def _meaning(lexicon: Lexicon, key: str) -> tuple[str, str | None, str, str]:
    known = lexicon.known
    inverse = known.inverse(key)
    return (
        known.canonical(key),
        inverse,
        known.cardinality(key),
        known.cardinality(inverse) if inverse else "",
    )
