"""A gRPC server whose answers a test scripts, and which tells what it saw."""
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import grpc
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc

from quire_client.v1 import cache_pb2, cache_pb2_grpc, generation_pb2, generation_pb2_grpc
from quire_client.v1.generation_pb2 import GenerateRequest, GenerateStreamResponse

PATIENCE_SECONDS = 30  # for what must happen; a test fails after it, none takes it
Script = Callable[[GenerateRequest, grpc.ServicerContext], Iterator[GenerateStreamResponse]]


def started() -> GenerateStreamResponse:
    return GenerateStreamResponse(started=generation_pb2.StreamStarted(request_id="r-1", model="fake", prompt_tokens=3))


def chunk(text: str, *token_ids: int) -> GenerateStreamResponse:
    return GenerateStreamResponse(chunk=generation_pb2.StreamChunk(text=text, token_ids=token_ids))


def finished() -> GenerateStreamResponse:
    reason = generation_pb2.FINISH_REASON_LENGTH
    usage = generation_pb2.Usage(prompt_tokens=3, completion_tokens=2)
    return GenerateStreamResponse(finished=generation_pb2.StreamFinished(finish_reason=reason, usage=usage))


def answer(request: GenerateRequest, context: grpc.ServicerContext) -> Iterator[GenerateStreamResponse]:
    yield from (started(), chunk("Hello", 1), chunk(" you", 2), finished())


def failure(
    code: grpc.StatusCode, message: str, *details: Message, after: tuple[GenerateStreamResponse, ...] = ()
) -> Script:
    """Fails, `after` some events."""

    def script(request: GenerateRequest, context: grpc.ServicerContext) -> Iterator[GenerateStreamResponse]:
        yield from after
        abort(context, code, message, *details)

    return script


def abort(context: grpc.ServicerContext, code: grpc.StatusCode, message: str, *details: Message) -> NoReturn:
    status = Status(code=code.value[0], message=message)
    for detail in details:
        status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, message)


class FakeServer(
    generation_pb2_grpc.GenerationServicer,
    cache_pb2_grpc.CacheServicer,
    health_pb2_grpc.HealthServicer,  # type: ignore[misc]
):
    """Answers call number n with script number n, the last one again and again."""

    def __init__(self, *scripts: Script, credentials: grpc.ServerCredentials | None = None) -> None:
        self.requests: list[Any] = []
        self.metadata: list[dict[str, Any]] = []
        self.arrived = threading.Event()
        self.ended = threading.Event()  # a call that does not end by itself
        self._scripts = scripts or (answer,)
        self._server = grpc.server(ThreadPoolExecutor(max_workers=8))
        generation_pb2_grpc.add_GenerationServicer_to_server(self, self._server)
        cache_pb2_grpc.add_CacheServicer_to_server(self, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self, self._server)
        port = (
            self._server.add_secure_port("localhost:0", credentials)
            if credentials
            else self._server.add_insecure_port("localhost:0")
        )
        self.address = f"localhost:{port}"

    def __enter__(self) -> "FakeServer":
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.stop(grace=None).wait()

    def hold(self, request: GenerateRequest, context: grpc.ServicerContext) -> Iterator[GenerateStreamResponse]:
        """Says a word, and then nothing until the client ends the call."""
        context.add_callback(self.ended.set)
        yield from (started(), chunk("Hello", 1))
        self.ended.wait()

    def GenerateStream(self, request: GenerateRequest, context: Any) -> Iterator[GenerateStreamResponse]:
        script = self._scripts[min(len(self.requests), len(self._scripts) - 1)]
        self._note(request, context)
        return script(request, context)

    def Generate(self, request: GenerateRequest, context: Any) -> generation_pb2.GenerateResponse:
        response = generation_pb2.GenerateResponse(outputs=[generation_pb2.Output()])
        output = response.outputs[0]
        for event in self.GenerateStream(request, context):
            output.text += event.chunk.text
            output.token_ids.extend(event.chunk.token_ids)
            if event.HasField("started"):
                response.request_id, response.model = event.started.request_id, event.started.model
            if event.HasField("finished"):
                output.finish_reason = event.finished.finish_reason
                response.usage.CopyFrom(event.finished.usage)
                response.timings.CopyFrom(event.finished.timings)
        return response

    def Tokenize(self, request: Any, context: Any) -> generation_pb2.TokenizeResponse:
        self._note(request, context)
        return generation_pb2.TokenizeResponse(token_ids=[1], token_texts=["a"])

    def Detokenize(self, request: Any, context: Any) -> generation_pb2.DetokenizeResponse:
        self._note(request, context)
        return generation_pb2.DetokenizeResponse(text="a")

    def ListModels(self, request: Any, context: Any) -> generation_pb2.ListModelsResponse:
        self._note(request, context)
        return generation_pb2.ListModelsResponse(models=[generation_pb2.ModelInfo(name="fake")])

    def GetModelInfo(self, request: Any, context: Any) -> generation_pb2.ModelInfo:
        self._note(request, context)
        return generation_pb2.ModelInfo(name="fake")

    def GetCacheStats(self, request: Any, context: Any) -> cache_pb2.CacheStats:
        self._note(request, context)
        return cache_pb2.CacheStats(blocks_total=4)

    def WatchCacheStats(self, request: Any, context: Any) -> Iterator[cache_pb2.CacheStats]:
        self._note(request, context)
        context.add_callback(self.ended.set)
        yield cache_pb2.CacheStats(blocks_total=4)
        self.ended.wait()

    def GetCacheConfig(self, request: Any, context: Any) -> cache_pb2.CacheConfig:
        raise NotImplementedError

    def Check(self, request: Any, context: Any) -> health_pb2.HealthCheckResponse:
        self._note(request, context)
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)

    def _note(self, request: Any, context: grpc.ServicerContext) -> None:
        self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        self.arrived.set()
