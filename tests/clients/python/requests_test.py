"""Arguments as messages, and messages as an answer: pure."""
from typing import Any

import pytest

from quire_client import ChatMessage, FinishReason, GenerateOptions, Generation
from quire_client.generation import GenerationBuilder
from quire_client.requests import generate_request, tokenize_request
from quire_client.v1 import generation_pb2
from quire_client.v1.generation_pb2 import GenerateRequest, GenerateStreamResponse, PositionLogprobs, SamplingParams

STOP_TOKEN = generation_pb2.FINISH_REASON_STOP_TOKEN
USER = {"role": "user", "content": "Hi"}


def test_every_field_is_an_option() -> None:
    fields = {*GenerateRequest.DESCRIPTOR.fields_by_name, *SamplingParams.DESCRIPTOR.fields_by_name}
    # The text is the prompt, the call's own deadline is what the timeout is.
    fields -= {"text", "sampling", "timeout_seconds"}
    fields = {{"chat": "messages", "stop_strings": "stop"}.get(field, field) for field in fields}
    assert fields == GenerateOptions.__annotations__.keys()


def test_options_go_where_they_belong() -> None:
    request = generate_request("Hi", {"temperature": 0, "seed": 7, "priority": -2, "stop_token_ids": (1, 2)})
    expected = GenerateRequest(text="Hi", priority=-2)
    expected.sampling.MergeFrom(SamplingParams(temperature=0, seed=7, stop_token_ids=[1, 2]))
    assert request == expected
    assert request.sampling.HasField("temperature")


def test_none_is_unset() -> None:
    none: Any = dict.fromkeys(GenerateOptions.__annotations__)
    assert generate_request("Hi", none) == GenerateRequest(text="Hi")


@pytest.mark.parametrize("stop", ["END", ["END"], ("END",), iter(["END"])])
def test_one_stop_string_or_several(stop: Any) -> None:
    assert generate_request("Hi", {"stop": stop}).sampling.stop_strings == ["END"]


def test_inputs() -> None:
    assert generate_request("", {}).WhichOneof("input") == "text"
    assert generate_request(None, {"token_ids": range(3)}).token_ids.ids == [0, 1, 2]
    chat = generate_request(None, {"messages": [USER, ChatMessage(role="assistant", content="Ho")]}).chat
    assert [message.content for message in chat.messages] == ["Hi", "Ho"]
    assert tokenize_request(None, [USER], "", False).chat.messages[0].role == "user"
    assert tokenize_request("a", None, "m", True).parse_special


@pytest.mark.parametrize(
    ("prompt", "options", "got"),
    [
        (None, {}, "none"),
        ("Hi", {"token_ids": [1]}, "prompt and token_ids"),
        ("", {"messages": []}, "prompt and messages"),
    ],
)
def test_there_is_one_input(prompt: str | None, options: Any, got: str) -> None:
    with pytest.raises(TypeError, match=f"expected exactly one of prompt, messages, token_ids; got {got}"):
        generate_request(prompt, options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"temprature": 0}, TypeError, "unexpected option 'temprature'"),
        ({"seed": -1}, ValueError, "seed: "),
        ({"stop": 3}, TypeError, "stop: "),
        ({"max_tokens": "many"}, TypeError, "max_tokens: "),
        ({"messages": [{"role": "user", "text": "Hi"}]}, ValueError, "text"),
    ],
)
def test_what_cannot_be_sent_is_named(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        generate_request(None if "messages" in options else "Hi", options)


def test_a_stream_adds_up_to_the_whole_answer() -> None:
    usage = generation_pb2.Usage(prompt_tokens=2, completion_tokens=2)
    timings = generation_pb2.Timings(total_seconds=1)
    positions = [PositionLogprobs(chosen=generation_pb2.TokenLogprob(token_id=token)) for token in (1, 2, 3)]
    finished = generation_pb2.StreamFinished(finish_reason=STOP_TOKEN, usage=usage, timings=timings)
    builder = GenerationBuilder()
    for event in (
        GenerateStreamResponse(started=generation_pb2.StreamStarted(request_id="r", model="m")),
        GenerateStreamResponse(chunk=generation_pb2.StreamChunk(prompt_logprobs=positions[:1])),
        GenerateStreamResponse(chunk=generation_pb2.StreamChunk(text="a", token_ids=[2], logprobs=positions[1:2])),
        GenerateStreamResponse(chunk=generation_pb2.StreamChunk(text="b", token_ids=[3], logprobs=positions[2:])),
        GenerateStreamResponse(finished=finished),
    ):
        builder.add(event)
    output = generation_pb2.Output(text="ab", token_ids=[2, 3], logprobs=positions[1:], finish_reason=STOP_TOKEN)
    response = generation_pb2.GenerateResponse(
        request_id="r", model="m", outputs=[output], usage=usage, timings=timings, prompt_logprobs=positions[:1]
    )
    assert builder.build() == Generation.from_response(response)


def test_finish_reasons_are_those_of_the_api() -> None:
    for name, value in generation_pb2.FinishReason.items():
        response = generation_pb2.GenerateResponse(outputs=[generation_pb2.Output(finish_reason=value)])
        reason = name.removeprefix("FINISH_REASON_").lower()
        assert Generation.from_response(response).finish_reason == reason
    assert len(generation_pb2.FinishReason.values()) == len(FinishReason)


def test_a_finish_reason_of_the_future() -> None:
    output = generation_pb2.Output.FromString(b"\x28\x63")  # finish_reason: 99
    response = generation_pb2.GenerateResponse(outputs=[output])
    assert Generation.from_response(response).finish_reason is FinishReason.UNSPECIFIED
