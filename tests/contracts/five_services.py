"""What each of the five services answers, whatever runtime carries it: every RPC, as the gateway calls it."""

from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gateway.services import Services
from palimpsest.internal.v1 import (
    classifier_pb2,
    extractor_pb2,
    preprocessor_pb2,
    recall_diff_pb2,
    recall_lists_pb2,
    recall_pb2,
    resolver_pb2,
    values_pb2,
)
from services.domain.errors import InternalFailure, ServiceError
from services.domain.instants import instant
from services.domain.scope import GraphId, Scope, TenantId
from services.runtime.descriptors import DESCRIPTORS
from services.runtime.names import ServiceName

SECONDS = 60
SECRET = "a secret that the contract of the five shares"
SAID = instant(datetime(2025, 1, 1, tzinfo=UTC))
TEXT = "Ana lives in Graz."
EVERY_RPC: Sequence[tuple[ServiceName, MethodDescriptor]] = [
    (name, rpc) for name, descriptor in DESCRIPTORS.items() for rpc in descriptor.methods
]
SETTING = values_pb2.Setting(kind="conversation", user_name="Mara", time_zone="UTC", reference_time=SAID)
TURN = values_pb2.Turn(passage_id="p", speaker="user", role="user", text=TEXT, said_at=SAID)


class FiveServicesContract:
    """Subclasses give `services`: the way to the five, wherever they are."""

    @pytest.fixture
    def scope(self) -> Scope:
        """A graph of this test alone."""
        return Scope(TenantId("contract"), GraphId(f"g{uuid4().hex}"))

    async def test_the_preprocessor_keeps_text_and_forgets_it(self, services: Services, scope: Scope) -> None:
        stub = services.preprocessor
        source = preprocessor_pb2.Source(
            kind="document", text=TEXT, document_id="home", title="Home", reference_time=SAID
        )
        asked = preprocessor_pb2.PreprocessRequest(job_id="j1", source=source)
        first = await services.call(scope, stub.Preprocess, asked, SECONDS)
        again = await services.call(scope, stub.Preprocess, asked, SECONDS)
        assert len(first.chunks) == 1
        assert again == first, "idempotent by job"
        quote = preprocessor_pb2.QuoteRequest(source=source)
        assert (await services.call(scope, stub.Quote, quote, SECONDS)).tokens == first.tokens
        document = preprocessor_pb2.GetDocumentRequest(document_id="home", version=1)
        assert (await services.call(scope, stub.GetDocument, document, SECONDS)).text == TEXT
        episode = first.chunks[0].episode_id
        unlearned = preprocessor_pb2.MarkUnlearnedRequest(episode_id=episode)
        await services.call(scope, stub.MarkUnlearned, unlearned, SECONDS)
        forget = preprocessor_pb2.DeleteEpisodeTextRequest(episode_id=episode)
        assert (await services.call(scope, stub.DeleteEpisodeText, forget, SECONDS)).deleted
        assert not (await services.call(scope, stub.DeleteEpisodeText, forget, SECONDS)).deleted

    async def test_the_preprocessor_records_assertions(self, services: Services, scope: Scope) -> None:
        group = preprocessor_pb2.AssertionGroup(reference_time=SAID, lines=[TEXT])
        asked = preprocessor_pb2.RecordAssertionsRequest(job_id="j1", groups=[group])
        recorded = await services.call(scope, services.preprocessor.RecordAssertions, asked, SECONDS)
        assert len(recorded.episodes) == 1

    async def test_the_extractor_finds_facts_and_says_when_there_are_none(
        self, services: Services, scope: Scope
    ) -> None:
        extract = services.extractor.Extract
        found = await services.call(
            scope, extract, extractor_pb2.ExtractRequest(turns=[TURN], setting=SETTING), SECONDS
        )
        assert [fact.object.mention.name for fact in found.world] == ["Graz"]
        assert found.receipts
        talk = values_pb2.Turn(passage_id="p", speaker="user", role="user", text="Hello!", said_at=SAID)
        none = await services.call(
            scope, extract, extractor_pb2.ExtractRequest(turns=[talk], setting=SETTING), SECONDS
        )
        assert none.nothing

    async def test_the_classifier_gives_each_fact_an_aspect(self, services: Services, scope: Scope) -> None:
        fact = values_pb2.WorldFact(
            kind=values_pb2.FACT_KIND_CLAIM,
            subject=values_pb2.Mention(name="Ana", type="PERSON"),
            predicate="lives in",
            object=values_pb2.Target(mention=values_pb2.Mention(name="Graz", type="PLACE")),
            fact=TEXT,
            quote=TEXT,
            passage_id="p",
        )
        asked = classifier_pb2.ClassifyRequest(world=[fact], setting=SETTING)
        answer = await services.call(scope, services.classifier.Classify, asked, SECONDS)
        assert [bool(one.aspect) for one in answer.world] == [True]

    async def test_a_text_becomes_facts_that_are_recalled(self, services: Services, scope: Scope) -> None:
        source = preprocessor_pb2.Source(
            kind="conversation",
            messages=[preprocessor_pb2.SourceMessage(message_id="m1", role="user", text=TEXT, said_at=SAID)],
            session_id="s1",
            reference_time=SAID,
        )
        preprocess = preprocessor_pb2.PreprocessRequest(job_id="j1", source=source)
        prepared = await services.call(scope, services.preprocessor.Preprocess, preprocess, SECONDS)
        episode = prepared.chunks[0].episode_id
        gather = recall_pb2.GatherContextRequest(episode_id=episode)
        context = await services.call(scope, services.recall.GatherContext, gather, SECONDS)
        assert [turn.text for turn in context.turns] == [TEXT]
        extract = extractor_pb2.ExtractRequest(turns=context.turns, setting=context.setting)
        extracted = await services.call(scope, services.extractor.Extract, extract, SECONDS)
        classify = classifier_pb2.ClassifyRequest(world=extracted.world, setting=context.setting)
        classified = await services.call(scope, services.classifier.Classify, classify, SECONDS)
        store = resolver_pb2.StoreFactsRequest(
            episode_id=episode, world=classified.world, setting=context.setting
        )
        await services.call(scope, services.resolver.StoreFacts, store, SECONDS)
        resolve = resolver_pb2.ResolveRequest(episode_id=episode)
        resolved = await services.call(scope, services.resolver.Resolve, resolve, SECONDS)
        again = await services.call(scope, services.resolver.Resolve, resolve, SECONDS)
        assert again.revision == resolved.revision, "idempotent by episode"
        await self.is_recalled(services, scope, episode, resolved.revision)
        lives = resolver_pb2.DeclarePredicateRequest(
            commit_id="c0", name="lives in", cardinality="single", actor="key"
        )
        declared = await services.call(scope, services.resolver.DeclarePredicate, lives, SECONDS)
        assert (declared.revision, declared.predicate.declared) == (resolved.revision + 1, True)
        gone = resolver_pb2.RevokeRequest(commit_id="c1", episode_id=episode, actor="key", why="asked")
        revoked = await services.call(scope, services.resolver.Revoke, gone, SECONDS)
        assert revoked.claims == 1
        read = recall_pb2.ReadGraphRequest()
        assert (await services.call(scope, services.recall.ReadGraph, read, SECONDS)).statements == 0

    async def is_recalled(self, services: Services, scope: Scope, episode: str, revision: int) -> None:
        """Every read of the recall service shows the one fact."""
        now = instant(datetime(2025, 6, 1, tzinfo=UTC))
        stub = services.recall
        asked = recall_pb2.RecallRequest(
            query="Where does Ana live?", now=now, include_facts=True, min_revision=revision,
            max_facts=5, max_hops=1, token_budget=500, time_zone="UTC",
        )  # fmt: skip
        answer = await services.call(scope, stub.Recall, asked, SECONDS)
        (fact,) = answer.facts
        statement = fact.statement
        one = recall_pb2.ReadStatementRequest(statement_id=statement.id, min_revision=revision)
        read = await services.call(scope, stub.ReadStatement, one, SECONDS)
        assert read.statement.id == statement.id
        ask_all = recall_pb2.ListStatementsRequest(page_size=10, now=now, min_revision=revision)
        listed = await services.call(scope, stub.ListStatements, ask_all, SECONDS)
        assert [each.id for each in listed.statements] == [statement.id]
        line = recall_pb2.ReadTimelineRequest(
            subject="Ana", predicate="lives_in", now=now, min_revision=revision
        )
        assert len((await services.call(scope, stub.ReadTimeline, line, SECONDS)).entries) == 1
        walk = recall_pb2.WalkRequest(seeds=["Ana"], max_hops=1, per_level=5, now=now, min_revision=revision)
        assert len((await services.call(scope, stub.Walk, walk, SECONDS)).steps) == 1
        counts = await services.call(scope, stub.ReadGraph, recall_pb2.ReadGraphRequest(), SECONDS)
        assert (counts.statements, counts.claims, counts.revision) == (1, 1, revision)
        episodes = await services.call(
            scope, stub.ListEpisodes, recall_lists_pb2.ListEpisodesRequest(), SECONDS
        )
        assert [each.id for each in episodes.episodes] == [episode]
        people = await services.call(
            scope, stub.ListEntities, recall_lists_pb2.ListEntitiesRequest(name_prefix="an", now=now), SECONDS
        )
        assert [(card.entity.name, card.statements) for card in people.entities] == [("Ana", 1)]
        ana = recall_lists_pb2.ReadEntityRequest(entity="Ana", now=now)
        card = (await services.call(scope, stub.ReadEntity, ana, SECONDS)).entity
        assert card.entity.id == statement.subject.id
        met = recall_lists_pb2.ListPredicatesRequest(page_size=500)
        predicates = (await services.call(scope, stub.ListPredicates, met, SECONDS)).predicates
        assert [one.since for one in predicates if one.name == "lives_in"] == [revision]
        spoken = recall_lists_pb2.ListVoiceAspectsRequest(now=now)
        assert not (await services.call(scope, stub.ListVoiceAspects, spoken, SECONDS)).voice
        diff = recall_diff_pb2.DiffRequest(
            system=recall_diff_pb2.SystemPoints(
                before=values_pb2.KnownAt(revision=0), after=values_pb2.KnownAt(revision=revision)
            )
        )
        [change] = (await services.call(scope, stub.Diff, diff, SECONDS)).changes
        assert (change.kind, change.statement.id) == ("added", statement.id)
        whole = recall_pb2.ReadEpisodeRequest(episode_id=episode)
        assert (await services.call(scope, stub.ReadEpisode, whole, SECONDS)).episode.id == episode

    async def test_the_resolver_asserts_once_for_one_commit(self, services: Services, scope: Scope) -> None:
        group = preprocessor_pb2.AssertionGroup(reference_time=SAID, lines=[TEXT])
        record = preprocessor_pb2.RecordAssertionsRequest(job_id="j1", groups=[group])
        recorded = await services.call(scope, services.preprocessor.RecordAssertions, record, SECONDS)
        (episode,) = recorded.episodes
        assertion = resolver_pb2.Assertion(
            kind=values_pb2.FACT_KIND_CLAIM,
            subject=values_pb2.Mention(name="Ana", type="PERSON"),
            predicate="lives_in",
            object=values_pb2.Target(mention=values_pb2.Mention(name="Graz", type="PLACE")),
            start=SAID,
            start_precision=values_pb2.PRECISION_DAY,
            attested_at=SAID,
            confidence=1,
            episode_id=episode.id,
            passage_id=episode.passages[0].id,
        )
        asked = resolver_pb2.AssertRequest(commit_id="c1", assertions=[assertion])
        first = await services.call(scope, services.resolver.Assert, asked, SECONDS)
        again = await services.call(scope, services.resolver.Assert, asked, SECONDS)
        assert (again.revision, list(again.statement_ids)) == (first.revision, list(first.statement_ids))
        assert first.outcome.claims == 1
        ended = resolver_pb2.EndUnsupportedRequest(commit_id="c2", at=SAID)
        nothing = await services.call(scope, services.resolver.EndUnsupported, ended, SECONDS)
        assert list(nothing.outcome.statements_ended) == []

    @pytest.mark.parametrize(
        ("service", "rpc"), EVERY_RPC, ids=[f"{name}-{rpc.name}" for name, rpc in EVERY_RPC]
    )
    async def test_an_empty_request_gets_an_answer_or_a_typed_refusal(
        self, services: Services, scope: Scope, service: ServiceName, rpc: MethodDescriptor
    ) -> None:
        request: Message = GetMessageClass(rpc.input_type)()
        method = getattr(getattr(services, service), rpc.name)
        outcome: object
        try:
            if rpc.server_streaming:
                async with aclosing(services.stream(scope, method, request, SECONDS)) as answers:
                    outcome = await anext(answers)
            else:
                outcome = await services.call(scope, method, request, SECONDS)
        except ServiceError as error:
            outcome = error
        assert isinstance(outcome, GetMessageClass(rpc.output_type) | ServiceError)
        assert not isinstance(outcome, InternalFailure), outcome
