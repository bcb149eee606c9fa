"""Descriptors: the RPCs of each service. Imports nothing but generated code."""

from collections.abc import Mapping

from google.protobuf.descriptor import ServiceDescriptor

from palimpsest.internal.v1 import (
    classifier_pb2,
    extractor_pb2,
    preprocessor_pb2,
    recall_pb2,
    resolver_pb2,
)
from services.runtime.names import ServiceName

DESCRIPTORS: Mapping[ServiceName, ServiceDescriptor] = {
    ServiceName.PREPROCESSOR: preprocessor_pb2.DESCRIPTOR.services_by_name["PreprocessorService"],
    ServiceName.EXTRACTOR: extractor_pb2.DESCRIPTOR.services_by_name["ExtractorService"],
    ServiceName.CLASSIFIER: classifier_pb2.DESCRIPTOR.services_by_name["ClassifierService"],
    ServiceName.RESOLVER: resolver_pb2.DESCRIPTOR.services_by_name["ResolverService"],
    ServiceName.RECALL: recall_pb2.DESCRIPTOR.services_by_name["RecallService"],
}
