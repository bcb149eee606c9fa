"""The five Ray Serve applications, by name: for the launcher, and for `import_path` in a Serve config."""

from ray import serve

from services.runtime.descriptors import DESCRIPTORS
from services.runtime.names import ServiceName
from services.runtime.ray_adapter import OpenService, replica_class
from services.runtime.ray_settings import RaySettings
from services.runtime.serve_config import BuildArguments, deployment_options


def _class(name: str, service: ServiceName) -> type:
    return replica_class(name, __name__, DESCRIPTORS[service], DESCRIPTORS.values())


Preprocessor = _class("Preprocessor", ServiceName.PREPROCESSOR)
Extractor = _class("Extractor", ServiceName.EXTRACTOR)
Classifier = _class("Classifier", ServiceName.CLASSIFIER)
Resolver = _class("Resolver", ServiceName.RESOLVER)
Recall = _class("Recall", ServiceName.RECALL)

_CLASSES: dict[ServiceName, type] = {
    ServiceName.PREPROCESSOR: Preprocessor,
    ServiceName.EXTRACTOR: Extractor,
    ServiceName.CLASSIFIER: Classifier,
    ServiceName.RESOLVER: Resolver,
    ServiceName.RECALL: Recall,
}


def application(name: ServiceName, settings: RaySettings, handover: str = "") -> serve.Application:
    """One service as an application; its replicas read the settings of `handover`, or their environment."""
    deployment = serve.deployment(**deployment_options(name, settings))(_CLASSES[name])
    return deployment.bind(OpenService(name, handover))


def build(arguments: BuildArguments) -> serve.Application:
    """What `import_path: services.runtime.ray_applications:build` of a Serve config names.

    Replicas read their settings from the environment of their node. How many there are says the config.
    """
    return application(arguments.service, RaySettings())
