"""The catalogue: how each service is built, on resources that are shared or its own.

A service is imported where it is built, so that a replica loads what it runs and nothing else: for one that
only calls models that is a fifth. The classifier opens what it writes, and no graph and no vectors.
"""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from services.domain.instants import Instant
from services.domain.predicates import default_vocabulary
from services.llm.port import Engine
from services.runtime.models import open_engine
from services.runtime.names import ServiceName
from services.runtime.settings import ServiceSettings

if TYPE_CHECKING:
    from services.runtime.resources import Resources, WritingResources


@runtime_checkable
class Closes(Protocol):
    """A service that does something behind its answers."""

    async def close(self) -> None:
        """Ends that; to be called when no call is under way, before the stores are closed."""
        ...


def all_services(resources: "Resources") -> Mapping[ServiceName, object]:
    """Every service, on one set of resources."""
    of_models = {name: build(resources.engine) for name, build in _OF_MODELS.items()}
    of_stores = {name: build(resources) for name, build in _OF_STORES.items()}
    return {ServiceName.CLASSIFIER: _classifier(resources)} | of_models | of_stores


async def open_service(
    name: ServiceName, settings: ServiceSettings, stack: AsyncExitStack, now: Callable[[], Instant]
) -> object:
    """One service, on resources of its own; one that only calls models opens no store.

    `stack` closes them. Raises as `open_resources` does.
    """
    if name in _OF_MODELS:
        return _OF_MODELS[name](open_engine(settings, stack))
    from services.runtime.resources import open_resources, open_writing

    if name is ServiceName.CLASSIFIER:
        return _classifier(await open_writing(settings, stack, now))
    service = _OF_STORES[name](await open_resources(settings, stack, now))
    if isinstance(service, Closes):
        stack.push_async_callback(service.close)
    return service


def _extractor(engine: Engine) -> object:
    from services.extractor.service import Extractor

    return Extractor(engine)


def _classifier(resources: "Resources | WritingResources") -> object:
    from services.classifier.parts import Parts
    from services.classifier.service import Classifier

    memory = resources.memory
    return Classifier(
        Parts(
            engine=resources.engine,
            embedder=resources.embedder,
            summaries=memory.summaries,
            decisions=memory.decisions,
            revisions=memory.revisions,
            now=resources.now,
        )
    )


def _preprocessor(resources: "Resources") -> object:
    from services.preprocessor.service import Preprocessor

    memory = resources.memory
    return Preprocessor(memory.text, resources.vectors, resources.embedder, resources.now, memory)


def _resolver(resources: "Resources") -> object:
    from services.llm.remembering import Remembering
    from services.resolver.publish import Stores
    from services.resolver.service import Parts, Resolver

    memory = resources.memory
    return Resolver(
        Parts(
            stores=Stores(
                resources.graph,
                memory.revisions,
                memory.voice,
                memory.decisions,
                memory.readings,
                memory.archive,
                memory.summaries,
            ),
            text=memory.text,
            staging=memory.staging,
            vectors=resources.vectors,
            embedder=Remembering(resources.embedder),
            engine=resources.engine,
            vocabulary=default_vocabulary(),
            now=resources.now,
            memory=memory,
        )
    )


def _recall(resources: "Resources") -> object:
    from services.recall.parts import Parts, options_of
    from services.recall.ready import make_ready
    from services.recall.service import Recall

    make_ready()
    memory = resources.memory
    return Recall(
        Parts(
            graph=resources.graph,
            text=memory.text,
            voice=memory.voice,
            readings=memory.readings,
            archive=memory.archive,
            revisions=memory.revisions,
            decisions=memory.decisions,
            snapshots=memory.snapshots,
            summaries=memory.summaries,
            vectors=resources.vectors,
            embedder=resources.embedder,
            vocabulary=default_vocabulary(),
            options=options_of(resources.recall),
        )
    )


_OF_MODELS: Mapping[ServiceName, Callable[[Engine], object]] = {
    ServiceName.EXTRACTOR: _extractor,
}
_OF_STORES: Mapping[ServiceName, Callable[["Resources"], object]] = {
    ServiceName.PREPROCESSOR: _preprocessor,
    ServiceName.RESOLVER: _resolver,
    ServiceName.RECALL: _recall,
}
