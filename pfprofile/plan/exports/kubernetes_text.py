"""The fixed parts of the Kubernetes export."""

from __future__ import annotations

from pfprofile.plan.exports.clock_changes import clock_changes_by

#: after TERM, until whatever is left of the training is given up, s
DRAIN_S = 100
#: Locks the clocks of the container's own GPUs, trains, resets whatever happens but a kill of the whole pod.
SCRIPT = r"""
set -um  # -m: the training gets a process group of its own, which can be told to stop as a whole
# A privileged container sees every GPU of its node: those that it was given stand in these variables.
own_gpus() {
  local given
  for given in "${NVIDIA_VISIBLE_DEVICES:-}" "${CUDA_VISIBLE_DEVICES:-}"; do
    case "$given" in
      "" | all | void | none | NoDevFiles) ;;
      /*) [ -d "$given" ] && given=$(ls "$given") && [ -n "$given" ] && { echo $given; return 0; } ;;
      *) echo "${given//,/ }"; return 0 ;;
    esac
  done
  return 1
}
set_clock() {
  local gpu failed=0 gpus wanted=(-lgc "$1,$1")
  [ "$1" = reset ] && wanted=(-rgc)
  gpus=$(own_gpus) || { echo "pfprofile: nothing says which GPUs are ours; clocks are left alone" >&2; return 1; }
  for gpu in $gpus; do
    nvidia-smi -i "$gpu" "${wanted[@]}" >&2 || failed=1
    [ "$failed" = 1 ] && [ "$1" != reset ] && return 1
  done
  return "$failed"
}
locked=no training= timer=
cleanup() {
  trap - EXIT
  [ -n "$timer" ] && kill "$timer" 2>/dev/null && wait "$timer"
  [ "$locked" = yes ] && { set_clock reset || echo "pfprofile: clocks could not be reset" >&2; }
}
drain() { # what the command started may still be writing a checkpoint
  local until=$((SECONDS + DRAIN_S))
  while kill -0 -- "-$training" 2>/dev/null && [ "$SECONDS" -lt "$until" ]; do sleep 0.2; done
}
stop() {
  trap '' TERM INT
  [ -n "$training" ] && { kill -TERM -- "-$training" 2>/dev/null; wait "$training"; drain; }
  exit 143
}
trap cleanup EXIT
trap stop TERM INT
clocks=(${CLOCKS:-})
if [ "${#clocks[@]}" -gt 0 ]; then
  if set_clock "${clocks[0]#*:}"; then locked=yes
  else
    set_clock reset 2>/dev/null
    [ "${PFPROFILE_REQUIRE_CLOCKS:-0}" = 1 ] && { echo "pfprofile: clocks cannot be set" >&2; exit 4; }
    echo "pfprofile: clocks cannot be set; going on unlocked" >&2
  fi
fi
CLOCK_CHANGES
COMMAND="trap 'exit 143' TERM; $COMMAND"
if [ "${END_AFTER_S:-0}" -gt 0 ]; then
  timeout --signal=TERM --kill-after=DRAIN_S "$END_AFTER_S" bash -c "$COMMAND" & training=$!
  wait "$training"; status=$?
  [ "$status" -eq 124 ] && { drain; status=0; }
else
  bash -c "$COMMAND" & training=$!
  wait "$training"; status=$?
fi
exit "$status"
""".replace("DRAIN_S", str(DRAIN_S)).replace("CLOCK_CHANGES\n", clock_changes_by("set_clock"))

APPLY_HEAD = r"""#!/bin/bash
# Creates every Job suspended, then starts each as soon as those before it are over (and not before its planned time).
set -eu
cd "$(dirname "$0")"
namespace=${NAMESPACE_OVERRIDE:-NAMESPACE}
for file in pf-*.json; do kubectl apply --namespace "$namespace" -f "$file"; done
begun=$SECONDS
over() {
  case "$(kubectl get job "$1" --namespace "$namespace" \
      -o jsonpath='{.status.conditions[?(@.status=="True")].type}')" in
    *Complete* | *Failed*) return 0 ;;
  esac
  return 1
}
start() {
  local job=$1 not_before=$2 left other
  for other in "${@:3}"; do until over "$other"; do sleep 5; done; done
  left=$((not_before - (SECONDS - begun)))
  [ "$left" -gt 0 ] && sleep "$left"
  kubectl patch job "$job" --namespace "$namespace" --type merge -p '{"spec":{"suspend":false}}'
}
"""

APPLY_NOTHING = """#!/bin/bash
echo "nothing to start: the schedule is empty" >&2
"""

README = """# A schedule as Kubernetes Jobs

`./apply.sh` creates every Job suspended and starts them in order, each when the Jobs that held its GPUs, and its own
previous part, are over. It must keep running until the last one has started. One Job is one stretch of a training job:
the same GPUs from a start or restart to its end or next restart. Several nodes become one Indexed Job with a headless
Service; pods find each other by MASTER_ADDR and MASTER_PORT.

**Clocks.** Locking an SM clock needs root on the node, so containers that lock one are `privileged`. Such a container
sees every GPU of its node; only those that NVIDIA_VISIBLE_DEVICES (or CUDA_VISIBLE_DEVICES) names are touched, and
where neither names any, none is. Where a clock cannot be set the training goes on unlocked and says so;
PFPROFILE_REQUIRE_CLOCKS=1 in the manifest makes it fail instead. Clocks are reset when the container ends or is told
to. A pod that is killed without notice leaves them: reset them on the node (`nvidia-smi -rgc`). With the option
`privileged=no` no clock is set.

**Nodes.** The node names of the cluster file must be the nodes' `kubernetes.io/hostname`. The device plugin chooses
the GPUs of a node.

**Image.** Option `image=…`; it needs bash, your training, and for zoo workloads pfprofile with its extra `train`.
Checkpoints must outlive pods: name a volume claim with `claim=…`.
"""
