"""The catalogue: of each service its RPCs, and how it is built on open resources. Both runtimes read it."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from google.protobuf.descriptor import ServiceDescriptor

from palimpsest.internal.v1 import (
    classifier_pb2,
    extractor_pb2,
    preprocessor_pb2,
    recall_pb2,
    resolver_pb2,
)
from services.classifier.service import Classifier
from services.domain.instants import Instant
from services.domain.predicates import default_vocabulary
from services.extractor.service import Extractor
from services.llm.port import Engine
from services.preprocessor.service import Preprocessor
from services.recall.parts import Parts as RecallParts
from services.recall.service import Recall
from services.resolver.publish import Stores
from services.resolver.service import Parts as ResolverParts
from services.resolver.service import Resolver
from services.runtime.names import ServiceName
from services.runtime.resources import Resources, clock, open_engine, open_resources
from services.runtime.settings import ServiceSettings

DESCRIPTORS: Mapping[ServiceName, ServiceDescriptor] = {
    ServiceName.PREPROCESSOR: preprocessor_pb2.DESCRIPTOR.services_by_name["PreprocessorService"],
    ServiceName.EXTRACTOR: extractor_pb2.DESCRIPTOR.services_by_name["ExtractorService"],
    ServiceName.CLASSIFIER: classifier_pb2.DESCRIPTOR.services_by_name["ClassifierService"],
    ServiceName.RESOLVER: resolver_pb2.DESCRIPTOR.services_by_name["ResolverService"],
    ServiceName.RECALL: recall_pb2.DESCRIPTOR.services_by_name["RecallService"],
}


def all_services(resources: Resources) -> Mapping[ServiceName, object]:
    """Every service, on one set of resources."""
    of_models = {name: build(resources.engine) for name, build in _OF_MODELS.items()}
    return of_models | {name: build(resources) for name, build in _OF_STORES.items()}


async def open_service(
    name: ServiceName,
    settings: ServiceSettings,
    stack: AsyncExitStack,
    now: Callable[[], Instant] = clock,
) -> object:
    """One service, on resources of its own; one that only calls models opens no store.

    `stack` closes them. Raises as `open_resources` does.
    """
    if name in _OF_MODELS:
        return _OF_MODELS[name](open_engine(settings, stack))
    return _OF_STORES[name](await open_resources(settings, stack, now))


def _preprocessor(resources: Resources) -> object:
    return Preprocessor(resources.memory.text, resources.vectors, resources.embedder, resources.now)


def _resolver(resources: Resources) -> object:
    memory = resources.memory
    return Resolver(
        ResolverParts(
            stores=Stores(resources.graph, memory.revisions, memory.voice, memory.decisions),
            text=memory.text,
            staging=memory.staging,
            vectors=resources.vectors,
            embedder=resources.embedder,
            engine=resources.engine,
            vocabulary=default_vocabulary(),
            now=resources.now,
        )
    )


def _recall(resources: Resources) -> object:
    memory = resources.memory
    return Recall(
        RecallParts(
            graph=resources.graph,
            text=memory.text,
            voice=memory.voice,
            revisions=memory.revisions,
            vectors=resources.vectors,
            embedder=resources.embedder,
            vocabulary=default_vocabulary(),
        )
    )


_OF_MODELS: Mapping[ServiceName, Callable[[Engine], object]] = {
    ServiceName.EXTRACTOR: Extractor,
    ServiceName.CLASSIFIER: Classifier,
}
_OF_STORES: Mapping[ServiceName, Callable[[Resources], object]] = {
    ServiceName.PREPROCESSOR: _preprocessor,
    ServiceName.RESOLVER: _resolver,
    ServiceName.RECALL: _recall,
}
