"""An inference server without a framework, and with the faults that real ones have: `--fault`."""

from __future__ import annotations

import argparse
import os
import signal
import socketserver
import subprocess
import sys
import time

_CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


class _Answers(socketserver.StreamRequestHandler):
    """A line for each line; a request of HTTP is answered too."""

    def handle(self) -> None:
        options = self.server.options  # type: ignore[attr-defined]
        for count, line in enumerate(self.rfile):
            if line.startswith(b"GET"):
                self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\nready")
                return
            end = time.perf_counter() + options.work / 1000
            while time.perf_counter() < end:
                pass
            self.wfile.write(line)
            if options.fault == "dies" and count == 5:
                sys.stderr.write("Traceback (most recent call last):\nRuntimeError: the model is gone\n")
                sys.stderr.flush()
                os._exit(1)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--work", type=float, default=3, help="ms of computing an answer")
    parser.add_argument("--load", type=float, default=0.0, help="s until the model is loaded")
    parser.add_argument("--fault", default="none")
    options = parser.parse_args()
    if options.fault == "deaf":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.fault == "children":
        subprocess.Popen([sys.executable, "-S", "-c", _CHILD], start_new_session=True)
    if options.fault == "import":
        raise ModuleNotFoundError("No module named 'the_model'", name="the_model")
    time.sleep(600 if options.fault == "never" else options.load)
    with _Server(("127.0.0.1", options.port), _Answers) as server:
        server.options = options  # type: ignore[attr-defined]
        print(f"config: work={options.work:g}", flush=True)
        print("Application startup complete", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
