"""`doctor --gpu` with short phases and no campaign, as a program: FOLDER SECONDS. Prints the answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support import cuda


def diagnosed(
    folder: Path, script: str = "", driver: str = "", *, count: int = 1, seconds: float = 2.2, **env: str
) -> Any:
    """The answer's JSON on a machine of the stand-ins' scripts; the bundle lies in `folder`/here."""
    here = folder / "here"
    here.mkdir(parents=True)
    variables = {**cuda.standin(folder, script, driver, count=count), "GPUDEBUG_LOCK_DIR": str(folder), **env}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.gpu_doctor", str(here), str(seconds)],
        env=variables,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main() -> None:
    from gpudebug.core.errors import GpudebugError
    from gpudebug.engine.tools.gpu_doctor import GpuPlan, gpu_doctor

    folder, seconds = sys.argv[1:]
    try:
        answer = gpu_doctor(Path(folder), lambda live: None, GpuPlan(phase_s=float(seconds)))
    except GpudebugError as error:
        print(json.dumps({"error": error.as_json(), "status": error.exit_code}))
        return
    print(json.dumps(answer.as_json()))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
