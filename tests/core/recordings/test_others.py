"""Output of other programs is known by name."""

from __future__ import annotations

import pytest

from gpudebug.core.recordings.others import other_output

TEXTS = {
    "top": "top - 14:05:07 up 10 days,  3:01,  2 users,  load average: 1.63, 1.41, 1.22\n",
    "vmstat": "procs -----------memory---------- ---swap-- -----io----\n r  b   swpd   free\n",
    "iostat": "Linux 5.15.0 (node7)\n\navg-cpu:  %user   %nice %system %iowait  %steal   %idle\n",
    "pidstat": "14:05:07      UID       PID    %usr %system  %guest   %wait    %CPU   CPU  Command\n",
    "sar": "14:05:07        CPU     %user     %nice   %system   %iowait    %steal     %idle\n",
    "free": "               total        used        free      shared  buff/cache   available\n",
    "dstat": '"pcp-dstat 5.3.6 CSV Output"\n"Author:","PCP team"\n',
    "a Prometheus exporter": "# HELP node_cpu_seconds_total Seconds\n# TYPE node_cpu_seconds_total counter\n",
    "seff": "Job ID: 123456\nCluster: alpha\nState: COMPLETED (exit code 0)\n",
    "jobstats": "=====\n                              Slurm Job Statistics\n=====\n",
    "sacct or sstat": "JobID|JobName|State|Elapsed|MaxRSS\n123456|train|COMPLETED|02:00:00|\n",
    "squeue or bjobs": "             JOBID PARTITION     NAME     USER ST       TIME  NODES\n",
    "dcgmi stats": "Successfully retrieved statistics for job: demo.\n+----+\n| GPU ID: 0 |\n",
    "nvidia-smi -L": "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-aa0c1e00-1111-2222-3333-444455556666)\n",
    "a DCGM exporter's list of fields": "# Format\n\nDCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (in %).\n",
    "nvidia-smi topo": "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\x1b[0m\nGPU0\t X \tNV12\tPXB\t0-31\n",
    "nvidia-smi": 'Field "utilization.gpuu" is not a valid field to query.\n',
    "a storage service": '<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code></Error>\n',
    "a shell": "bash: nvidia-smi: command not found\n",
    "Git LFS": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
    "intel_gpu_top": " Freq MHz      IRQ RC6     Power W\n req  act       /s   %   gpu   pkg\n",
    "xpu-smi stats": "| Device ID     | 0    |\n+------+-----+\n| GPU Utilization (%)    | 43  |\n",
    "neuron-monitor": '{"period": 1.0, "neuron_runtime_data": []}\n',
    "powermetrics": "*** Sampled system activity (Mon Mar  9 14:05:07 2026 +0100) (1002ms elapsed) ***\n",
    "nsys stats": "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Name\n",
    "CloudWatch": '{"Label": "utilization_gpu", "Datapoints": [{"Average": 5.0}]}\n',
    "Datadog": '{"series": [{"metric": "dcgm.gpu_utilization", "pointlist": [[1, 2]]}]}\n',
    "Grafana, one figure a row": '"Time","Value","gpu","__name__"\n',
}


@pytest.mark.parametrize("name", TEXTS)
def test_each_is_known_by_its_name(name: str) -> None:
    found = other_output(TEXTS[name])
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "text",
    [
        "step 1 loss 2.0\nstep 2 loss 1.9\n",
        "Time (s),loss\n0.1,2.0\n",
        "Job ID: 7\nepoch 1 loss 2.0\n",
        "GPU 0: A100, 40 GB, training on it\n",
        "total 5 used 3\n",
        "",
    ],
)
def test_a_log_is_none_of_them(text: str) -> None:
    assert other_output(text) is None
