#!/usr/bin/env python3
"""The official openai package against a running server: calls whose answers are checked one by one.

usage: openai_calls.py BASE_URL     (http://127.0.0.1:8000/v1)
Needs the package: pip install openai. Exits with 1 if any call is not answered as OpenAI's API would.
"""
import asyncio
import json
import sys
import time
import traceback
import urllib.request

import openai

CHAT = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
calls = []


def call(function):
    calls.append(function)
    return function


def raises(error, function):
    try:
        function()
    except error as caught:
        return caught
    raise AssertionError(f"no {error.__name__}")


def chat(client, **more):
    more = {"model": client.model, "messages": CHAT, "temperature": 0, "max_tokens": 24, **more}
    return client.chat.completions.create(**more)


def complete(client, **more):
    more = {"model": client.model, "prompt": "One, two, three,", "temperature": 0, "max_tokens": 8, **more}
    return client.completions.create(**more)


def text_of(stream):
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


@call
def models_are_listed(client):
    assert [model.id for model in client.models.list()] == [client.model]


@call
def a_model_is_retrieved(client):
    assert client.models.retrieve(client.model).object == "model"


@call
def an_unknown_model_is_not_found(client):
    raises(openai.NotFoundError, lambda: client.models.retrieve("gpt-none"))
    raises(openai.NotFoundError, lambda: chat(client, model="gpt-none"))


@call
def a_chat_is_answered(client):
    answer = chat(client)
    assert "Paris" in answer.choices[0].message.content, answer
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


@call
def a_chat_is_streamed(client):
    assert text_of(chat(client, stream=True)) == chat(client).choices[0].message.content


@call
def a_stream_counts_at_its_end(client):
    chunks = list(chat(client, stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].usage.completion_tokens > 0 and not chunks[-1].choices
    assert chunks[-2].choices[0].finish_reason == "stop"


@call
def a_system_message_is_taken(client):
    messages = [{"role": "system", "content": "You answer in French."}] + CHAT
    assert chat(client, messages=messages).usage.prompt_tokens > 0


@call
def text_parts_are_joined(client):
    parts = [{"type": "text", "text": CHAT[0]["content"][:10]}, {"type": "text", "text": CHAT[0]["content"][10:]}]
    answer = chat(client, messages=[{"role": "user", "content": parts}])
    assert answer.choices[0].message.content == chat(client).choices[0].message.content


@call
def max_tokens_ends_with_length(client):
    answer = chat(client, max_tokens=2)
    assert answer.choices[0].finish_reason == "length" and answer.usage.completion_tokens == 2


@call
def max_completion_tokens_is_the_same(client):
    answer = chat(client, max_tokens=openai.omit, max_completion_tokens=2)
    assert answer.usage.completion_tokens == 2


@call
def a_stop_string_ends_before_it(client):
    whole = chat(client).choices[0].message.content
    assert chat(client, stop=["France"]).choices[0].message.content == whole[: whole.index("France")]


@call
def a_seed_repeats(client):
    answers = {chat(client, temperature=1, seed=7).choices[0].message.content for _ in range(2)}
    assert len(answers) == 1


@call
def several_choices_come_in_order(client):
    answer = chat(client, n=3, temperature=1, seed=1)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) > 1


@call
def log_probabilities_of_a_chat(client):
    content = chat(client, logprobs=True, top_logprobs=3, max_tokens=4).choices[0].logprobs.content
    assert len(content) == 4
    for token in content:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3
        assert bytes(token.bytes).decode() == token.token
        assert token.top_logprobs[0].token == token.token


@call
def a_text_is_completed(client):
    assert "four" in complete(client).choices[0].text


@call
def a_completion_is_streamed(client):
    streamed = "".join(chunk.choices[0].text for chunk in complete(client, stream=True))
    assert streamed == complete(client).choices[0].text


@call
def several_prompts_are_completed(client):
    answer = complete(client, prompt=["One, two,", "A, B, C,"])
    assert len(answer.choices) == 2 and answer.choices[0].text != answer.choices[1].text


@call
def token_ids_are_completed(client):
    assert complete(client, prompt=[1, 2, 3]).usage.prompt_tokens == 3


@call
def log_probabilities_of_a_completion(client):
    logprobs = complete(client, logprobs=2, max_tokens=3).choices[0].logprobs
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.text_offset) == 3
    assert "".join(logprobs.tokens) == complete(client, max_tokens=3).choices[0].text


@call
def a_wrong_value_is_named(client):
    error = raises(openai.BadRequestError, lambda: chat(client, temperature=-1))
    assert error.param == "temperature" and error.status_code == 400


@call
def what_is_not_supported_is_named(client):
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    assert raises(openai.BadRequestError, lambda: chat(client, tools=[tool])).param == "tools"


@call
def an_empty_conversation_is_refused(client):
    assert raises(openai.BadRequestError, lambda: chat(client, messages=[])).param == "messages"


@call
def what_can_never_fit_is_refused(client):
    error = raises(openai.BadRequestError, lambda: chat(client, max_tokens=10**9))
    assert error.param == "max_tokens", error


@call
def a_cancelled_stream_frees_the_cache(client):
    stream = chat(client, stream=True, max_tokens=4000, extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    cache = f"{str(client.base_url).rstrip('/')}/cache"
    for _ in range(200):
        with urllib.request.urlopen(cache) as response:
            if json.load(response)["requests_running"] == 0:
                return
        time.sleep(0.05)  # between looks; the test is over when it has happened
    raise AssertionError("still running")


@call
def many_are_answered_at_once(client):
    async def ask_all():
        async with openai.AsyncOpenAI(base_url=client.base_url, api_key="none") as concurrent:
            return await asyncio.gather(*[chat_async(concurrent) for _ in range(8)])

    async def chat_async(concurrent):
        answer = await concurrent.chat.completions.create(
            model=client.model, messages=CHAT, temperature=0, max_tokens=24)
        return answer.choices[0].message.content

    assert all("Paris" in text for text in asyncio.run(ask_all()))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
    client.model = client.models.list().data[0].id
    failures = 0
    for function in calls:
        try:
            function(client)
            print(f"ok    {function.__name__}")
        except Exception:  # pylint: disable=broad-except
            failures += 1
            print(f"WRONG {function.__name__}\n{traceback.format_exc()}")
    print(f"openai {openai.__version__}: {len(calls) - failures} of {len(calls)} as OpenAI's API would answer")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
