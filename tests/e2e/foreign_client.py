"""A client that has the protos alone: run by a test as a program, with stubs that protoc made just before.

    python foreign_client.py HOST:PORT TEXT QUESTION

The key is in FOREIGN_KEY. Says a text, watches its job, asks a question; prints what it saw as one JSON line.
"""

import json
import os
import sys

import grpc

import palimpsest
from palimpsest.v1 import (
    episode_pb2,
    job_pb2,
    jobs_pb2,
    jobs_pb2_grpc,
    memory_ingest_pb2,
    memory_pb2_grpc,
    recall_pb2,
    recall_pb2_grpc,
)


def main() -> None:
    target, text, question = sys.argv[1:]
    metadata = (("authorization", f"Bearer {os.environ['FOREIGN_KEY']}"),)
    with grpc.insecure_channel(target) as channel:
        request = memory_ingest_pb2.AddEpisodeRequest(
            graph_id="diary",
            request_id="foreign-1",
            text=text,
            kind=episode_pb2.EPISODE_KIND_CONVERSATION,
        )
        request.reference_time.FromJsonString("2026-06-30T10:00:00Z")
        accepted = memory_pb2_grpc.MemoryServiceStub(channel).AddEpisode(
            request, metadata=metadata, timeout=30
        )
        watching = jobs_pb2_grpc.JobServiceStub(channel).WatchJob(
            jobs_pb2.WatchJobRequest(job_id=accepted.job.job_id), metadata=metadata, timeout=60
        )
        seen = [change.job for change in watching]
        recalled = recall_pb2_grpc.RecallServiceStub(channel).Recall(
            recall_pb2.RecallRequest(graph_ids=["diary"], query=question, min_revision=seen[-1].revision),
            metadata=metadata,
            timeout=10,
        )
    stages = [episode_pb2.ChunkStage.Name(chunk.stage) for job in seen for chunk in job.chunks]
    told = {
        "stubs": palimpsest.__file__,
        "ours": sorted({name.partition(".")[0] for name in sys.modules} & {"services", "gateway", "tests"}),
        "states": [job_pb2.JobState.Name(job.state) for job in seen],
        "stages": list(dict.fromkeys(stages)),
        "spent_micros": seen[-1].credits.spent_micros,
        "facts": [
            [fact.statement.subject.name, fact.statement.predicate.name, fact.statement.object.entity.name]
            for fact in recalled.facts
        ],
        "context": recalled.context,
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
