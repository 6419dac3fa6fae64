"""What gpudebug knows of interpreters, launchers and wrappers: which of their options take a value."""

from __future__ import annotations

from typing import NamedTuple

from gpudebug.core.lazy import regex


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# They hand the words to a shell as one text, or build commands out of them.
SHELL_LIKE = _words(
    "ssh rsh mosh pdsh clush watch eval script su runuser parallel xargs find at batch tmux screen sbatch "
    "bsub qsub salloc make just task npm npx yarn tox nox invoke gcloud wsl expect busybox cmd pwsh"
)
# They take their own options behind the program, too, or their program is no word of the command.
MIXED = _words("colossalai fabric lightning ray torchx sky modal runai wandb mlflow dask")
# Interpreters of other languages: what their options take is not known here.
OTHERS = _words(
    "perl ruby node deno bun julia Rscript R java lua luajit php octave matlab ipython ipython3 jupyter "
    "awk gawk sed gdb lldb tclsh"
)


class Wrapper(NamedTuple):
    """A command that starts another one. `values` are its options that take a value, `bare` those that take
    none; `words` stand before the program (a mask, an image); `entry`: the last of them may be the program.
    """

    subcommands: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    words: int = 0
    entry: bool = False
    assignments: bool = False
    scripts: bool = False
    hidden: frozenset[str] = frozenset()


def _plain(values: str = "", bare: str = "", words: int = 0, hidden: str = "") -> Wrapper:
    return Wrapper(values=_words(values), bare=_words(bare), words=words, hidden=_words(hidden))


def _run(
    subcommands: str, values: str = "", bare: str = "", words: int = 0, *, entry: bool = False
) -> Wrapper:
    return Wrapper(_words(subcommands), _words(values), _words(bare), words, entry)


_TORCHRUN = Wrapper(
    values=_words(
        "--nnodes --nproc-per-node --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf --max-restarts "
        "--monitor-interval --start-method --role --log-dir -r --redirects -t --tee "
        "--local-ranks-filter --node-rank --master-addr --master-port --local-addr --logs-specs "
        "--numa-binding --signals-to-handle --event-log-handler --duplicate-stdout-filters "
        "--duplicate-stderr-filters"
    ),
    bare=_words("--standalone --run-path --use-env -m --module --no-python"),
    scripts=True,
)
_ACCELERATE = Wrapper(
    subcommands=frozenset({"launch"}),
    values=_words(
        "--config-file --num-processes --num-machines --machine-rank --mixed-precision --main-process-ip "
        "--main-process-port --main-training-function --dynamo-backend --dynamo-mode "
        "--num-cpu-threads-per-process --gpu-ids --rdzv-backend --rdzv-conf --max-restarts "
        "--monitor-interval --role -t --tee --log-dir --gradient-accumulation-steps --gradient-clipping "
        "--zero-stage --deepspeed-config-file --deepspeed-hostfile --deepspeed-multinode-launcher "
        "--offload-optimizer-device --offload-param-device --zero3-init-flag "
        "--zero3-save-16bit-model --fsdp-version --fsdp-sharding-strategy --fsdp-auto-wrap-policy "
        "--fsdp-state-dict-type --fsdp-transformer-layer-cls-to-wrap --fsdp-offload-params "
        "--fsdp-backward-prefetch --fsdp-use-orig-params --fsdp-cpu-ram-efficient-loading "
        "--fsdp-sync-module-states --fsdp-activation-checkpointing --fsdp-min-num-params --same-network "
        "--main-process-ip --rdzv-id"
    ),
    bare=_words(
        "--multi-gpu --cpu --tpu --mps --ipex --use-xpu --use-deepspeed --use-fsdp --use-megatron-lm "
        "--quiet -q --debug --dynamo-use-fullgraph --dynamo-use-dynamic --enable-cpu-affinity "
        "-m --module --no-python"
    ),
    scripts=True,
)
_DEEPSPEED = Wrapper(
    values=_words(
        "-H --hostfile -i --include -e --exclude --num-nodes --num-gpus --min-elastic-nodes "
        "--max-elastic-nodes --node-rank --master-port --master-addr --launcher --launcher-args "
        "--save-pid --enable-each-rank-log --autotuning --venv-script --ssh-port --bind-core-list"
    ),
    bare=_words(
        "--module --no-python --no-local-rank --no-ssh --force-multi --no-ssh-check --bind-cores-to-rank"
    ),
    scripts=True,
)
_COMPOSER = Wrapper(
    values=_words(
        "-n --nproc --stdout --stderr --world-size --base-rank --node-rank --master-addr --master-port"
    ),
    bare=_words("-v --verbose -m --module-mode -c --command-mode"),
    scripts=True,
)
_MPI = _plain(
    "-n -np -c -N --np -host --host -H -hostfile --hostfile -machinefile -x --bind-to -bind-to "
    "--map-by -map-by --rank-by -rank-by -npernode -npersocket -wdir --wdir -output-filename "
    "-genvlist -ppn -perhost -f",
    "--allow-run-as-root --oversubscribe -oversubscribe -v --verbose -q --quiet --tag-output "
    "--report-bindings -report-bindings -bycore -bynode -nooversubscribe -l",
)
_CONTAINER = _run(
    "run exec create",
    "-v --volume --mount -e --env --env-file -w --workdir -u --user --name --gpus --shm-size "
    "--ipc --network --net --entrypoint --device --cpus --cpuset-cpus -m --memory -p "
    "--publish -h --hostname -l --label --runtime --ulimit --cap-add --cap-drop --security-opt "
    "--add-host --tmpfs --pid --platform --pull --restart -a --attach --memory-swap "
    "--user --userns --log-driver --log-opt --context -c --config -H --host -l --log-level "
    "--cidfile",
    "-i -t --rm --privileged --init -d --detach -P --interactive --tty --read-only --no-healthcheck "
    "-D --debug",
    words=1,
    entry=True,
)
_SINGULARITY = _run(
    "run exec",
    "-B --bind -W --pwd --workdir -H --home --env --env-file --overlay -S --scratch --hostname --network",
    "--nv --rocm -c --contain -C --containall -e --cleanenv -f --fakeroot -u --userns -w "
    "--writable --writable-tmpfs --no-home -p --pid -i --ipc -q --quiet -s --silent -d "
    "--debug -v --verbose --compat",
    words=1,
    entry=True,
)
_CONDA = _run(
    "run",
    "-n --name -p --prefix --cwd",
    "--no-capture-output --live-stream -v --verbose --dev --debug-wrapper-scripts",
)
_UV = _run(
    "run",
    "--with --with-editable --with-requirements --extra --group --only-group --no-group "
    "--env-file --package --python -p --index --default-index -i --index-url --extra-index-url "
    "-f --find-links --directory --project --config-file --cache-dir --color -C --config-setting "
    "--resolution --prerelease -P --upgrade-package --reinstall-package --refresh-package "
    "--exclude-newer --link-mode --no-build-package --python-platform --no-extra "
    "--index-strategy --keyring-provider -w --allow-insecure-host",
    "--all-extras --dev --no-dev --only-dev --all-groups --no-default-groups --no-editable "
    "--exact --isolated --active --no-sync --locked --frozen --no-project --all-packages "
    "--offline -q --quiet -v --verbose -n --no-cache --no-env-file -U --upgrade --refresh "
    "--no-index --reinstall --no-config --no-progress --native-tls --managed-python --no-managed-python "
    "--no-python-downloads --compile-bytecode --no-build --no-binary",
)
_SRUN = _plain(
    "-n --ntasks -N --nodes -c --cpus-per-task -p --partition -A --account -t --time -J "
    "--job-name -o --output -e --error -i --input -w --nodelist -x --exclude -D --chdir -G "
    "--gpus --gres --gpus-per-node --gpus-per-task --mem --mem-per-cpu --mem-per-gpu "
    "--ntasks-per-node --cpu-bind --gpu-bind --mem-bind -m --distribution --export --mpi -q "
    "--qos -C --constraint --reservation -K --kill-on-bad-exit --jobid -M --clusters -d "
    "--dependency --container-image --container-mounts --container-workdir --container-name "
    "--threads-per-core",
    "-l --label -u --unbuffered -s --oversubscribe --overlap --exclusive --exact -v --verbose "
    "-Q --quiet --pty -H --hold -E --preserve-env -k --no-kill --container-mount-home "
    "--container-remap-root --het-group",
    hidden="--multi-prog",
)

WRAPPERS: dict[str, Wrapper] = {
    "torchrun": _TORCHRUN,
    "accelerate": _ACCELERATE,
    "accelerate-launch": _ACCELERATE._replace(subcommands=frozenset()),
    "deepspeed": _DEEPSPEED,
    "composer": _COMPOSER,
    **dict.fromkeys(("mpirun", "mpiexec", "orterun", "prun", "mpirun.openmpi", "mpiexec.hydra"), _MPI),
    "horovodrun": _plain("-np --num-proc -H --hosts --hostfile -p --ssh-port --min-np --max-np --slots"),
    "srun": _SRUN,
    **dict.fromkeys(("docker", "podman", "nerdctl"), _CONTAINER),
    **dict.fromkeys(("apptainer", "singularity"), _SINGULARITY),
    "enroot": _run("start exec", "-m --mount -e --env -c --conf", "-r --root -w --rw", words=1, entry=True),
    "kubectl": _run("exec", "-n --namespace -c --container --context", "-i -t -q --quiet -it", words=1),
    **dict.fromkeys(("conda", "mamba", "micromamba"), _CONDA),
    "uv": _UV,
    "uvx": _UV._replace(subcommands=frozenset()),
    "poetry": _run(
        "run", "-C --directory -P --project", "-q --quiet -n --no-interaction -v -vv -vvv --no-plugins"
    ),
    "pdm": _run(
        "run", "-p --project --venv -c --config", "-v --verbose -q --quiet -s --site-packages --no-isolation"
    ),
    "hatch": _run("run", "-e --env -p --project", "-v --verbose -q --quiet"),
    "pipenv": _run("run", "--python --pypi-mirror", "-q --quiet -v --verbose --system"),
    "rye": _run("run", "--pyproject", "-q --quiet"),
    "pixi": _run("run", "-e --environment --manifest-path", "--frozen --locked -q --quiet -v --verbose"),
    "isaaclab.sh": Wrapper(bare=_words("-p --python"), scripts=True),
    "coverage": _run(
        "run",
        "--rcfile --source --include --omit --concurrency --data-file --context",
        "-a --append -p --branch --timid -m",
    )._replace(scripts=True),
    "env": _plain(
        "-u --unset -C --chdir", "-i --ignore-environment -0 --null -v --debug", hidden="-S --split-string"
    )._replace(assignments=True),
    "sudo": _plain(
        "-u --user -g --group -C -D --chdir -p -h",
        "-E --preserve-env -n -H -b",
        hidden="-s -i --shell --login",
    )._replace(assignments=True),
    "doas": _plain("-u -C", "-n", hidden="-s"),
    "nice": _plain("-n --adjustment"),
    "ionice": _plain("-c --class -n --classdata", "-t --ignore"),
    "nohup": _plain(),
    "setsid": _plain("", "-c --ctty -f --fork -w --wait"),
    "time": _plain("-f --format -o --output", "-p --portability -v --verbose -a --append -q --quiet"),
    "stdbuf": _plain("-i --input -o --output -e --error"),
    "unbuffer": _plain("", "-p"),
    "timeout": _plain("-k --kill-after -s --signal", "--preserve-status --foreground -v --verbose", words=1),
    "chrt": _plain("-T -P -D", "-f --fifo -r --rr -b --batch -o --other -i --idle -R -v -a", words=1),
    "taskset": _plain("", "-a --all-tasks -c --cpu-list", words=1),
    "numactl": _plain(
        "-i --interleave -N --cpunodebind -C --physcpubind -m --membind -p --preferred -w "
        "--weighted-interleave",
        "-l --localalloc -b --balancing -a --all",
    ),
    "xvfb-run": _plain(
        "-s --server-args -n --server-num -e --error-file -f --auth-file -w --wait -p --xauth-protocol",
        "-a --auto-servernum -l --listen-tcp",
    ),
    "catchsegv": _plain(),
    "command": _plain("", "-p"),
    "exec": _plain("-a", "-c -l"),
    "flock": _plain(
        "-w --timeout -E", "-x -e -s -n -o -u --exclusive --nonblock", words=1, hidden="-c --command"
    ),
    "unshare": _plain("", "-m -u -i -n -p -U -f -r --mount --fork --map-root-user"),
    "systemd-run": _plain(
        "-p --property -u --unit --slice -E --setenv", "--user --scope -q --quiet -t --pty --wait"
    ),
    "cgexec": _plain("-g", "--sticky"),
    "prlimit": _plain("-o --output"),
    "setpriv": _plain("--reuid --regid --groups --inh-caps --bounding-set", "--clear-groups --no-new-privs"),
    "nsys": _run(
        "profile", "-o --output -t --trace -s --sample -w --show-output -d --duration -y --delay -c -e -f -x"
    ),
    "ncu": _plain(
        "-o --export -k --kernel-name -c --launch-count -s --launch-skip --set --section", "-f --force"
    ),
    "nvprof": _plain("-o -f"),
    "perf": _run("record stat", "-o -e -F -p", "-g -a -v"),
    "strace": _plain("-e -o -p -s -u -E", "-f -ff -c -t -tt -T -v -q -y"),
    "ltrace": _plain("-e -o -p -s", "-f -c -S -t"),
    "valgrind": _plain(),
    "py-spy": _run(
        "record top", "-o --output -f --format -r --rate -d --duration -p", "-n --native -s -i -t -g"
    ),
    "memray": _run(
        "run", "-o --output -p", "-q -f --force --native --live --trace-python-allocators -m"
    )._replace(scripts=True),
    "scalene": Wrapper(scripts=True),
    "kernprof": Wrapper(values=_words("-o -s -p"), bare=_words("-l -v -b"), scripts=True),
    "viztracer": Wrapper(values=_words("-o --output_file"), bare=_words("-m"), scripts=True),
    "pyinstrument": Wrapper(values=_words("-o -r"), bare=_words("-m"), scripts=True),
    "ipex": Wrapper(scripts=True),
}
# Modules that start another program, by `python -m`, and the launcher that each is.
MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "torch.distributed.launcher": "torchrun",
    "accelerate.commands.launch": "accelerate-launch",
    "accelerate.commands.accelerate_cli": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "deepspeed.launcher.launch": "deepspeed",
    "deepspeed": "deepspeed",
    "composer.cli": "composer",
    "coverage": "coverage",
    "memray": "memray",
    "scalene": "scalene",
    "kernprof": "kernprof",
    "viztracer": "viztracer",
    "pyinstrument": "pyinstrument",
}
# Others of these would run their words.
UNCLEAR_MODULES = regex(
    r"(cProfile|profile|pdb|trace|timeit|runpy|code|debugpy|bdb|pip|pipx|venv|IPython|ipykernel|zipapp|doctest|ptw"
    r"|torch\.utils\.bottleneck|mpi4py|colossalai|ray|lightning|fabric|webbrowser|antigravity|idlelib|pyflame)(\..*)?"
)
LAUNCHERS = _words(
    "torchrun accelerate deepspeed composer mpirun mpiexec horovodrun srun numactl taskset nice ionice"
)
"""Launchers whose flags gpudebug.yaml may open with `allow_flags`."""
# Of these none may ever be opened: they choose what runs, where, or with which settings file.
NEVER_OPEN = _words(
    "-m --module --module-mode -c --command-mode --no-python --run-path --config-file "
    "--deepspeed-config-file --deepspeed-hostfile --hostfile -H --launcher --launcher-args --venv-script "
    "--logs-specs --event-log-handler --prolog --epilog --task-prolog --task-epilog --multi-prog --export "
    "--chdir -D --mca -mca -x --bcast --container-image --container-mounts --wdir -wdir "
    "--main-training-function --prefix"
)


# Options that take two words, of MPI's launchers.
PAIRS = _words("--mca -mca --gmca -gmca -genv -env --prtemca --pmixmca -tune")
