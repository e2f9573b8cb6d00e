"""``kubernetes:DIR``: one suspended Job a stretch, and a script that starts them in the planned order."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from pfprofile.plan.exports import kubernetes_text as text
from pfprofile.plan.exports.base import ExportPlan, Stretch, clock_changes

#: time to write a checkpoint after TERM, s
GRACE_S = 120
#: a stretch may take so much longer than planned before it is ended
SLACK, SLACK_S = 1.25, 600.0
PORT = 29500


class Kubernetes:
    """Job manifests. Options: ``image`` (with your training and pfprofile in it), ``namespace``, ``claim`` (a volume
    claim for checkpoints, mounted at /work), ``privileged=no`` where clocks are set by somebody else.
    """

    name = "kubernetes"
    options: Mapping[str, str] = {
        "image": "pfprofile:latest", "namespace": "default", "claim": "", "privileged": "yes"
    }  # fmt: skip

    def files(self, plan: ExportPlan, options: Mapping[str, str]) -> dict[str, str]:
        """See `pfprofile.plan.exports.base.Exporter`."""
        files = {}
        for stretch in plan.stretches:
            items = [_job(stretch, options)]
            if len(stretch.gpus) > 1:
                items.insert(0, _service(stretch, options))
            body = {"apiVersion": "v1", "kind": "List", "items": items}
            files[f"{_name(stretch)}.json"] = json.dumps(body, indent=1, allow_nan=False) + "\n"
        return {**files, "apply.sh": _apply(plan, options), "README.md": text.README}


def _name(stretch: Stretch) -> str:
    """A name for Kubernetes: small letters, digits and hyphens, at most 63."""
    middle = re.sub(r"[^a-z0-9-]+", "-", stretch.slug.lower())
    return f"pf-{middle}"[:63].strip("-")


def _service(stretch: Stretch, options: Mapping[str, str]) -> dict[str, Any]:
    """Gives the pods of several nodes names to find each other by."""
    name = _name(stretch)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": options["namespace"]},
        "spec": {"clusterIP": "None", "selector": {"job-name": name}, "publishNotReadyAddresses": True},
    }


def _job(stretch: Stretch, options: Mapping[str, str]) -> dict[str, Any]:
    name, nodes = _name(stretch), len(stretch.gpus)
    labels = {"app.kubernetes.io/managed-by": "pfprofile", "job-name": name}
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_S,
        "affinity": _affinity(stretch, name),
        "containers": [_container(stretch, options)],
    }
    if nodes > 1:
        spec["subdomain"] = name
    if options["claim"]:
        spec["volumes"] = [{"name": "work", "persistentVolumeClaim": {"claimName": options["claim"]}}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name, "namespace": options["namespace"], "labels": labels,
            "annotations": {
                "pfprofile/job": stretch.job.name, "pfprofile/part": str(stretch.part),
                "pfprofile/planned": f"{stretch.start_s:.0f} s to {stretch.end_s:.0f} s",
            },
        },
        "spec": {
            "suspend": True, "backoffLimit": 0, "completions": nodes, "parallelism": nodes,
            "completionMode": "Indexed",
            "activeDeadlineSeconds": math.ceil((stretch.end_s - stretch.start_s) * SLACK + SLACK_S),
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }  # fmt: skip


def _affinity(stretch: Stretch, name: str) -> dict[str, Any]:
    hosts = [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(stretch.gpus)}]
    terms = {"nodeSelectorTerms": [{"matchExpressions": hosts}]}
    affinity: dict[str, Any] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    if len(stretch.gpus) > 1:
        apart = {"labelSelector": {"matchLabels": {"job-name": name}}, "topologyKey": "kubernetes.io/hostname"}
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    return affinity


def _container(stretch: Stretch, options: Mapping[str, str]) -> dict[str, Any]:
    nodes, per_node, name = len(stretch.gpus), stretch.gpus_per_node, _name(stretch)
    leader = f"{name}-0.{name}" if nodes > 1 else "localhost"
    launcher = ["python"]
    if stretch.n_gpus > 1:
        launcher = ["torchrun", f"--nnodes={nodes}", f"--nproc-per-node={per_node}", f"--master-addr={leader}",
                    f"--master-port={PORT}", "--node-rank=${JOB_COMPLETION_INDEX:-0}"]  # fmt: skip
    command = stretch.command(launcher).replace("'--node-rank=${JOB_COMPLETION_INDEX:-0}'",
                                                '--node-rank="${JOB_COMPLETION_INDEX:-0}"')  # fmt: skip
    known = {f"PFPROFILE_{key.upper()}": value for key, value in {"job": stretch.job.name, **stretch.values()}.items()}
    known |= {"MASTER_ADDR": leader, "MASTER_PORT": str(PORT), "COMMAND": command}
    locks = any(clock is not None for _, clock in stretch.clocks)
    if locks and options["privileged"] != "no":
        known["CLOCKS"] = clock_changes(stretch)
    if not stretch.knows_its_end:
        known["END_AFTER_S"] = str(max(1, math.ceil(stretch.end_s - stretch.start_s)))
    container: dict[str, Any] = {
        "name": "train",
        "image": options["image"],
        "command": ["bash", "-c", _literal(text.SCRIPT)],
        "env": [{"name": key, "value": _literal(value)} for key, value in known.items()],
        "resources": {"limits": {"nvidia.com/gpu": str(per_node)}},
    }
    if "CLOCKS" in known:
        container["securityContext"] = {"privileged": True}
    if options["claim"]:
        container["volumeMounts"] = [{"name": "work", "mountPath": "/work"}]
        container["workingDir"] = "/work"
    return container


def _literal(value: str) -> str:
    """Kubernetes expands $(NAME) in values and commands, and makes one dollar of two."""
    return value.replace("$", "$$")


def _apply(plan: ExportPlan, options: Mapping[str, str]) -> str:
    names = {s.number: _name(s) for s in plan.stretches}
    lines = [text.APPLY_HEAD.replace("NAMESPACE", options["namespace"])]
    for s in plan.stretches:
        begin_s = 0 if s.begin_s is None else math.floor(s.begin_s - plan.start_s)
        lines.append(f"start {names[s.number]} {begin_s} {' '.join(names[k] for k in s.after)}".rstrip() + " &")
    if not plan.stretches:
        return text.APPLY_NOTHING
    return "\n".join([*lines, "wait", ""])
