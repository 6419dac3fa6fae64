#!/bin/sh
# TensorBoard: one value that comes late empties the page's curve, and the Python reader still has it whole.
#
# Expect   A scalar whose step is lower than the one before (an asynchronous logger, a second rank in the same folder) is one
#          more point; the page and tensorboard's own EventAccumulator show the same points.
# Happens  The page's data server takes a step that goes back for a restart, and drops every point of that curve from there
#          on: 16 of 106 are left. With --load_fast false the same page shows 106, as EventAccumulator does. Of two values at
#          one step the fast page shows the last, the others both.
# Versions tensorboard 2.21.0 with tensorboard-data-server 0.7.2, written by tensorboardX 2.6.5
# Hurts    Whoever reads a mean, a number of steps or a gap off the page, or compares it with what a script read from the file.
set -eu
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
trap 'exit 1' INT TERM
cd "$room"
python3 -m venv venv
venv/bin/pip install --quiet tensorboard==2.21.0 tensorboard-data-server==0.7.2 tensorboardX==2.6.5
venv/bin/python - <<'END'
import contextlib, importlib.metadata, json, socket, subprocess, sys, time, urllib.request

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboardX import SummaryWriter

for name in ("tensorboard", "tensorboard-data-server", "tensorboardX"):
    print(name, importlib.metadata.version(name))

with SummaryWriter("logs/run") as writer:
    for step in range(100):
        writer.add_scalar("loss", 100 - step, step)
    writer.add_scalar("loss", 90, 10)
    for step in range(100, 105):
        writer.add_scalar("loss", 0.5, step)
    writer.add_scalar("twice", 1, 7)
    writer.add_scalar("twice", 2, 7)


def page(fast: str) -> dict[str, int]:
    """How many points of each curve the page is given."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--logdir", "logs", "--host", "127.0.0.1", "--port", str(port), "--load_fast", fast]
    server = subprocess.Popen([sys.executable, "-m", "tensorboard.main", *words], stderr=subprocess.DEVNULL)
    try:
        for _ in range(120):
            time.sleep(0.5)
            with contextlib.suppress(OSError):
                url = f"http://127.0.0.1:{port}/data/plugin/scalars/scalars?run=run&tag="
                return {t: len(json.load(urllib.request.urlopen(url + t, timeout=10))) for t in ("loss", "twice")}
    finally:
        server.terminate()
        server.wait()
    sys.exit("the page never answered")


reader = EventAccumulator("logs/run").Reload()
seen = {
    "EventAccumulator": {tag: len(reader.Scalars(tag)) for tag in ("loss", "twice")},
    "page, --load_fast true": page("true"),
    "page, --load_fast false": page("false"),
}
for who, points in seen.items():
    print(f"{who}: {points['loss']} points of loss, {points['twice']} of twice")
whole, cut = {"loss": 106, "twice": 2}, {"loss": 16, "twice": 1}
if seen != dict(zip(seen, (whole, cut, whole), strict=True)):
    sys.exit("changed: expected 106 and 2, 16 and 1, 106 and 2")
print("as found")
END
