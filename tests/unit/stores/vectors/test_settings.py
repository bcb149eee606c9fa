"""Settings of a Milvus server: what they become, and that names of two installations can't be mixed up."""

import pytest
from pydantic import ValidationError

from services.stores.vectors import layout
from services.stores.vectors.milvus import Tls
from services.stores.vectors.port import Collection, Consistency
from services.stores.vectors.settings import MilvusSettings


def test_settings_become_options_without_showing_the_token() -> None:
    settings = MilvusSettings(
        prefix="staging",
        reads="strong",
        index="HNSW",
        hnsw_m=8,
        hnsw_ef=50,
        watch_seconds=2,
        timeout_seconds=3,
    )
    options = settings.options("https://milvus:19530", "root:secret", "model", 3)
    assert (options.uri, options.prefix, options.reads) == (
        "https://milvus:19530",
        "staging",
        Consistency.STRONG,
    )
    assert (options.index.build(), options.index.search(10), options.index.search(70)) == (
        {"M": 8, "efConstruction": 200},
        {"ef": 50},
        {"ef": 70},
    )
    assert settings.pause_seconds == 5
    assert options.token == "root:secret"
    assert "secret" not in repr(options)


def test_an_automatic_index_has_no_parameters_of_ours() -> None:
    assert (layout.Index().build(), layout.Index().search(10)) == ({}, {})


@pytest.mark.parametrize(
    ("tls", "arguments"),
    [
        (Tls(), {}),
        (Tls(authorities="ca.pem"), {"server_pem_path": "ca.pem"}),
        (
            Tls("ca.pem", "own.pem", "own.key", "milvus.test"),
            {
                "ca_pem_path": "ca.pem",
                "client_pem_path": "own.pem",
                "client_key_path": "own.key",
                "server_name": "milvus.test",
            },
        ),
    ],
)
def test_tls_is_passed_on_as_the_client_names_it(tls: Tls, arguments: dict[str, str]) -> None:
    assert tls.arguments() == arguments


@pytest.mark.parametrize("prefix", ["", "a_b", "Ab", "1a", "a" * 33])
def test_a_prefix_that_could_be_taken_for_another_is_refused(prefix: str) -> None:
    with pytest.raises(ValidationError):
        MilvusSettings(prefix=prefix)


@pytest.mark.parametrize("collection", Collection)
@pytest.mark.parametrize("embedder", ["axes", "A model/with: marks", "statements", "x" * 200, "模型"])
def test_a_name_tells_the_kind_and_the_owner_of_a_collection(collection: Collection, embedder: str) -> None:
    fingerprint = layout.fingerprint(embedder, 3)
    name = layout.collection_name("one", collection, fingerprint)
    assert (layout.kind("one", name), layout.owner("one", name)) == (collection, fingerprint)
    assert (layout.kind("other", name), layout.owner("other", name)) == (None, "")
    assert len(name) < 255
    assert name.isascii()
    assert layout.kind("one", layout.live_alias("one")) is None
