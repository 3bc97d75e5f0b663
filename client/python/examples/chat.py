"""A conversation, streamed: a line of standard input is a message; Ctrl-C stops an answer, Ctrl-D leaves.

usage: chat.py [HOST:PORT]
"""
import sys

from quire_client import Client


def main() -> None:
    messages: list[dict[str, str]] = []
    with Client(*sys.argv[1:2]) as client:
        for line in sys.stdin:
            messages.append({"role": "user", "content": line.strip()})
            answer = ""
            try:
                with client.stream(messages=messages, temperature=0, max_tokens=200) as stream:
                    for chunk in stream:
                        print(chunk.text, end="", flush=True)
                        answer += chunk.text
            except KeyboardInterrupt:
                print(" [stopped]", end="")
            print(flush=True)
            messages.append({"role": "assistant", "content": answer})


if __name__ == "__main__":
    main()
