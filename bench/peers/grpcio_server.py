"""The peer to beat: `ScoreService` as a plain grpcio server with the metric in its own process.

What a Python engineer writes first, and writes well: generated messages, a thread pool, one response a request message.
It has none of the sidecar's protections (a metric that hangs or dies takes the server along) and pays for none.

    python bench/peers/grpcio_server.py --metric bench/metric.py --workers 2

The first line on standard output is one JSON object with the address bound, as the sidecar prints it. SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import grpc

from skynet.scoring.v1 import case_pb2, score_service_pb2

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

Score = Callable[[Any, Any, Any], "tuple[float, dict[str, Any]]"]
"""The metric's function: input, output and expected to a score and its side info."""


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--metric", type=Path, required=True, help="the metric's file")
    parser.add_argument("--workers", type=int, default=2, help="threads that answer calls (default 2)")
    parser.add_argument("--listen", default="127.0.0.1:0", help="host:port; port 0 picks one")
    options = parser.parse_args()

    server = grpc.server(
        ThreadPoolExecutor(max_workers=options.workers),
        options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)],
    )
    server.add_generic_rpc_handlers((score_service(load_score(options.metric)),))
    host = options.listen.rpartition(":")[0]
    port = server.add_insecure_port(options.listen)
    signal.signal(signal.SIGTERM, lambda *_: server.stop(grace=0))
    server.start()
    print(json.dumps({"addresses": [f"{host}:{port}"]}), flush=True)
    server.wait_for_termination()


def score_service(score: Score) -> grpc.GenericRpcHandler:
    """`ScoreService`, both methods, over the metric's function."""

    def score_stream(
        requests: Iterable[score_service_pb2.ScoreRequest], _: grpc.ServicerContext
    ) -> Iterator[score_service_pb2.ScoreResponse]:
        index = 0
        for request in requests:
            response = score_service_pb2.ScoreResponse()
            score_cases(score, request.cases, index, response.results)
            index += len(request.cases)
            yield response

    def score_batch(
        request: score_service_pb2.ScoreBatchRequest, _: grpc.ServicerContext
    ) -> score_service_pb2.ScoreBatchResponse:
        response = score_service_pb2.ScoreBatchResponse()
        score_cases(score, request.cases, 0, response.results)
        return response

    return grpc.method_handlers_generic_handler(
        "skynet.scoring.v1.ScoreService",
        {
            "Score": grpc.stream_stream_rpc_method_handler(
                score_stream,
                request_deserializer=score_service_pb2.ScoreRequest.FromString,
                response_serializer=score_service_pb2.ScoreResponse.SerializeToString,
            ),
            "ScoreBatch": grpc.unary_unary_rpc_method_handler(
                score_batch,
                request_deserializer=score_service_pb2.ScoreBatchRequest.FromString,
                response_serializer=score_service_pb2.ScoreBatchResponse.SerializeToString,
            ),
        },
    )


def score_cases(
    score: Score,
    cases: Iterable[case_pb2.Case],
    first_index: int,
    results: RepeatedCompositeFieldContainer[case_pb2.CaseResult],
) -> None:
    """Score the cases of one message into `results`, in order; a case at fault costs nothing but itself."""
    arrived = perf_counter()
    for index, case in enumerate(cases, first_index):
        result = results.add(id=case.id, index=index)
        try:
            input_ = json.loads(case.input.json)
            output = json.loads(case.output.json)
            expected = json.loads(case.expected.json) if case.HasField("expected") else None
        except ValueError as error:
            fail(result, case_pb2.CASE_ERROR_CODE_INVALID_CASE, error)
            continue
        began = perf_counter()
        try:
            value, side_info = score(input_, output, expected)
        except Exception as error:
            fail(result, case_pb2.CASE_ERROR_CODE_METRIC_EXCEPTION, error)
            continue
        ended = perf_counter()
        result.score.value = value
        result.score.feedback = side_info["feedback"]
        if scores := side_info.get("scores"):
            result.score.scores.update(scores)
        result.timing.queued_ms = (began - arrived) * 1e3
        result.timing.metric_ms = (ended - began) * 1e3


def fail(result: case_pb2.CaseResult, code: case_pb2.CaseErrorCode, error: Exception) -> None:
    """Give a case its error."""
    result.error.code = code
    result.error.message = f"{type(error).__name__}: {error}"


def load_score(path: Path) -> Score:
    """The function `score` of the metric's file."""
    spec = importlib.util.spec_from_file_location("metric", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} cannot be imported: expected a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    score: Score = module.score
    return score


MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""The sidecar's default limit, so that both take the same messages."""


if __name__ == "__main__":
    main()
