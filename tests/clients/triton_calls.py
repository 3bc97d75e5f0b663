#!/usr/bin/env python3
"""Triton's own gRPC client against a running server with the default model: calls whose answers are checked.

usage: triton_calls.py ADDRESS MODEL     (127.0.0.1:50051 smollm2)
Needs the package: pip install tritonclient[grpc]. Exits with 1 if any call is not answered as Triton's client expects.
"""
import asyncio
import queue
import sys
import traceback

import numpy
import tritonclient.grpc
import tritonclient.grpc.aio
from tritonclient.utils import InferenceServerException

PROMPT = "The capital of France is"
GREEDY = {"temperature": 0.0, "max_tokens": 8}
calls = []


def call(function):
    calls.append(function)
    return function


def text_tensor(text, shape=(1,), grpc=tritonclient.grpc):
    tensor = grpc.InferInput("text_input", list(shape), "BYTES")
    tensor.set_data_from_numpy(numpy.full(shape, text.encode(), dtype=numpy.object_))
    return tensor


def infer(client, text=PROMPT, shape=(1,), parameters=GREEDY, **more):
    more.setdefault("model_name", client.model)
    return client.infer(inputs=[text_tensor(text, shape)], parameters=parameters, **more)


def text_of(result):
    return result.as_numpy("text_output").item().decode()


def refused(code, function):
    try:
        function()
    except InferenceServerException as error:
        assert error.status() == f"StatusCode.{code}", error
        return error.message()
    raise AssertionError(f"no {code}")


@call
def the_server_is_live_and_ready(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(client.model)
    assert not client.is_model_ready("other")
    assert not client.is_model_ready(client.model, "2")


@call
def metadata_tells_what_to_send(client):
    server = client.get_server_metadata()
    assert server.name == "quire" and server.version
    assert "schedule_policy" in server.extensions
    model = client.get_model_metadata(client.model)
    assert [(tensor.name, tensor.datatype) for tensor in model.inputs] == [("text_input", "BYTES")]
    assert [(tensor.name, tensor.datatype) for tensor in model.outputs] == [("text_output", "BYTES")]


@call
def a_prompt_is_answered(client):
    result = infer(client, request_id="mine")
    assert "Paris" in text_of(result), text_of(result)
    response = result.get_response()
    assert response.id == "mine"
    assert response.parameters["finish_reason"].string_param == "length"
    assert response.parameters["completion_tokens"].int64_param == 8


@call
def a_batch_of_one_is_answered_in_its_shape(client):
    result = infer(client, shape=(1, 1), outputs=[tritonclient.grpc.InferRequestedOutput("text_output")])
    assert result.as_numpy("text_output").shape == (1, 1)
    assert text_of(result) == text_of(infer(client))


@call
def a_stop_string_ends_the_text(client):
    assert "Paris" not in text_of(infer(client, parameters={**GREEDY, "stop": "Paris"}))


@call
def triton_s_own_parameters_are_taken(client):
    result = infer(client, priority=2, timeout=60_000_000, sequence_id=7, sequence_start=True, sequence_end=True)
    assert text_of(result) == text_of(infer(client))


@call
def a_timeout_in_microseconds_ends_the_request(client):
    long = {"max_tokens": 1000, "ignore_eos": True}
    refused("DEADLINE_EXCEEDED", lambda: infer(client, parameters=long, timeout=20_000))


@call
def many_at_once_are_answered(client):
    answers = queue.Queue()
    for _ in range(4):
        client.async_infer(client.model, [text_tensor(PROMPT)], lambda result, error: answers.put((result, error)),
                           parameters=GREEDY)
    for _ in range(4):
        result, error = answers.get(timeout=60)
        assert error is None and "Paris" in text_of(result), (error, result)


@call
def asyncio_s_client_is_answered(client):
    async def ask():
        async with tritonclient.grpc.aio.InferenceServerClient(client.address) as asyncio_client:
            assert await asyncio_client.is_server_ready()
            tensor = text_tensor(PROMPT, grpc=tritonclient.grpc.aio)
            return text_of(await asyncio_client.infer(client.model, [tensor], parameters=GREEDY))

    assert asyncio.run(ask()) == text_of(infer(client))


@call
def errors_say_what_is_wrong(client):
    assert "other" in refused("NOT_FOUND", lambda: infer(client, model_name="other"))
    assert refused("INVALID_ARGUMENT", lambda: infer(client, shape=(2,))).startswith("inputs[0].shape: got [2]")
    wrong = {"temperature": -1.0}
    assert refused("INVALID_ARGUMENT", lambda: infer(client, parameters=wrong)).startswith("temperature: ")
    unknown = {"beam_width": 4}
    assert refused("INVALID_ARGUMENT", lambda: infer(client, parameters=unknown)).startswith("beam_width: ")
    refused("UNIMPLEMENTED", client.get_inference_statistics)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    client = tritonclient.grpc.InferenceServerClient(sys.argv[1])
    client.address, client.model = sys.argv[1:]
    failed = 0
    for function in calls:
        try:
            function(client)
            print(f"ok      {function.__name__}")
        except Exception:
            failed += 1
            print(f"FAILED  {function.__name__}")
            traceback.print_exc()
    client.close()
    print(f"{len(calls) - failed} of {len(calls)} calls are answered as Triton's client expects")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
