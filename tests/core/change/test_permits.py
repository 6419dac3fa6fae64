"""Which variables a hypothesis may set."""

from __future__ import annotations

import pytest

from gpudebug.core.change import intervention
from gpudebug.core.change.permits import STEERING, Allowed, chooses_code, refuse_variable
from gpudebug.core.errors import InterventionError
from gpudebug.edges import catalogue as files
from gpudebug.engine.run import adapters, catalogue

_NEVER = """
    LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES PYTHONPATH PYTHONHOME PYTHONSTARTUP
    PYTHONINSPECT PYTHONWARNINGS PYTHONBREAKPOINT PYTHONUSERBASE PYTHONPLATLIBDIR PATH BASH_ENV ENV
    HOME BROWSER PAGER EDITOR GIT_SSH_COMMAND GIT_DIR GIT_EXTERNAL_DIFF NODE_OPTIONS
    JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS PERL5OPT RUBYOPT CUDA_INJECTION64_PATH
    NVTX_INJECTION64_PATH NCCL_NET_PLUGIN NCCL_TUNER_PLUGIN NCCL_PROFILER_PLUGIN OMP_TOOL_LIBRARIES
    UCX_MODULE_DIR GCONV_PATH TORCH_EXTENSIONS_DIR TRITON_CACHE_DIR TORCHINDUCTOR_CACHE_DIR
    CUDA_CACHE_PATH CXX CC NVCC TRITON_PTXAS_PATH CUDA_HOME GPUDEBUG_SESSION GPUDEBUG_RUN_DIR
    OMPI_MCA_plm_rsh_agent SSH_ASKPASS HF_MODULES_CACHE XDG_CONFIG_HOME ld_preload
"""
NEVER = _NEVER.split()


@pytest.mark.parametrize("name", NEVER)
def test_a_variable_that_chooses_code_is_refused_whatever_is_opened(name: str) -> None:
    assert chooses_code(name)
    with pytest.raises(InterventionError, match="code runs") as caught:
        refuse_variable(name, "1", Allowed(env=frozenset({name})))
    assert "workload.env" in str(caught.value.next)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMP_NUM_THREADS", "4"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True,roundup_power2_divisions:[256:1,>:4]"),
        ("NCCL_IB_HCA", "^=mlx5_0:1,mlx5_1"),
        ("CUDA_VISIBLE_DEVICES", ""),
        ("GOMP_CPU_AFFINITY", "0-3 8"),
        ("OMP_PLACES", "{0:4}:4:4"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MUJOCO_GL", "egl"),
    ],
)
def test_what_steers_libraries_may_be_set(name: str, value: str) -> None:
    refuse_variable(name, value, Allowed())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUDA_VISIBLE_DEVICES", "1"),
        ("NCCL_SOCKET_IFNAME", "/tmp/x"),
        ("XLA_PYTHON_CLIENT_ALLOCATOR", "$(id)"),
        ("PYTORCH_CUDA_ALLOC_CONF", "`id`"),
        ("MUJOCO_GL", "mine"),
        ("OMP_NUM_THREADS", "1\n"),
    ],
)
def test_a_steering_variable_takes_settings_and_no_paths(name: str, value: str) -> None:
    with pytest.raises(InterventionError) as caught:
        refuse_variable(name, value, Allowed())
    assert caught.value.next


def test_a_name_that_gpudebug_yaml_opens_may_be_set_and_others_name_the_line_to_add() -> None:
    refuse_variable("MY_LOADERS", "/any/value", Allowed(env=frozenset({"MY_LOADERS"})))
    with pytest.raises(InterventionError) as caught:
        refuse_variable("MY_LOADERS", "4", Allowed())
    assert "allow_env: [MY_LOADERS]" in str(caught.value.next)


def test_no_steering_variable_chooses_code() -> None:
    assert not [name for name in STEERING if chooses_code(name)]


def test_every_proposal_that_is_shipped_may_be_made() -> None:
    """Each change of a cause is applied to a program as its framework, or anybody, would start it."""
    refused, tried = [], 0
    for cause in catalogue.load(None).causes:
        for name, settings in cause.interventions.items():
            words = [f"--env={key}={value}" for key, value in settings.env.items()]
            dashed = {k if k[0] == "+" else f"--{k.lstrip('-')}": value for k, value in settings.set.items()}
            words += [f"--set={key}={value}" for key, value in dashed.items()]
            words += [f"--unset=--{key.lstrip('-')}" for key in settings.unset]
            tried += len(words)
            for word in words:
                kind, _, text = word[2:].partition("=")
                change = intervention.from_options(**{kind: [text]})  # type: ignore[arg-type]
                for command in (["python", "train.py"], ["torchrun", "--nproc_per_node", "2", "train.py"]):
                    try:
                        change.refuse_forbidden(command, Allowed())
                    except InterventionError as e:
                        refused.append((cause.id, name, e.message))
    assert tried > 20
    assert not refused
    assert files.shipped() and adapters.known()
