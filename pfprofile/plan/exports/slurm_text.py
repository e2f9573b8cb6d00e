"""The fixed parts of the Slurm export."""

from __future__ import annotations

from pfprofile.plan.exports.clock_changes import clock_changes_by

#: What every batch script does after its own settings.
BODY = r"""
set -u
one_node() { [ "${SLURM_JOB_NUM_NODES:-1}" -eq 1 ]; }

# Sets or resets the SM clock of this job's GPUs on this node. Inside a container of devices (cgroup) the visible
# indices count; only outside of one Slurm's own do. A reset goes on to the other GPUs where one refuses.
set_clock() {
  local gpu failed=0 gpus="${CUDA_VISIBLE_DEVICES:-${SLURM_STEP_GPUS:-${SLURM_JOB_GPUS:-}}}" wanted=(-lgc "$1,$1")
  [ "$1" = reset ] && wanted=(-rgc)
  [ -n "$gpus" ] || { echo "pfprofile: Slurm names no GPUs here; clocks are left alone" >&2; return 1; }
  for gpu in ${gpus//,/ }; do
    nvidia-smi -i "$gpu" "${wanted[@]}" >&2 || sudo -n nvidia-smi -i "$gpu" "${wanted[@]}" >&2 || failed=1
    [ "$failed" = 1 ] && [ "$1" != reset ] && return 1
  done
  return "$failed"
}
export -f set_clock
everywhere() {
  if one_node; then set_clock "$1"
  else srun --overlap --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 bash -c "set_clock $1"
  fi
}

locked=no timer= training=
cleanup() {
  trap - EXIT
  # No change of clock may come after the reset: one that is under way is waited for.
  [ -n "$timer" ] && kill "$timer" 2>/dev/null && wait "$timer"
  [ "$locked" = yes ] && { everywhere reset || echo "pfprofile: clocks could not be reset" >&2; }
}
stop() { # the training may write a checkpoint; the exit trap then resets the clocks
  trap '' TERM INT
  [ -n "$training" ] && kill -TERM "$training" 2>/dev/null && wait "$training"
  exit 143
}
trap cleanup EXIT
trap stop TERM INT

if [ "${#clocks[@]}" -gt 0 ]; then
  locked=yes
  if ! everywhere "${clocks[0]#*:}"; then
    everywhere reset 2>/dev/null # some may be locked, on this node or another
    locked=no
    [ "${PFPROFILE_REQUIRE_CLOCKS:-0}" = 1 ] && { echo "pfprofile: clocks cannot be set" >&2; exit 4; }
    echo "pfprofile: clocks cannot be set; going on unlocked" >&2
  fi
fi
CLOCK_CHANGES
mkdir -p checkpoints
MASTER_ADDR=$(scontrol show hostnames "${SLURM_JOB_NODELIST:-localhost}" 2>/dev/null | head -n 1)
export MASTER_ADDR="${MASTER_ADDR:-localhost}" MASTER_PORT=$((20000 + ${SLURM_JOB_ID:-0} % 20000))
# On TERM the shell around a command waits for what it runs, which may be writing its checkpoint.
command="trap 'exit 143' TERM; $command"
if [ "$end_after_s" -gt 0 ]; then
  # The command is not told when to stop: it is, at the planned time, and writes its checkpoint.
  srun timeout --signal=TERM --kill-after=120 "$end_after_s" bash -c "$command" &
else
  srun bash -c "$command" &
fi
training=$!
wait "$training"
status=$?
[ "$end_after_s" -gt 0 ] && [ "$status" -eq 124 ] && status=0
exit "$status"
""".replace("CLOCK_CHANGES\n", clock_changes_by("everywhere"))

SUBMIT_HEAD = r"""#!/bin/bash
# Submits every script in the planned order; prints name and job id.
set -eu
cd "$(dirname "$0")"
mkdir -p logs
declare -a id
submit() {
  local number=$1 script="${*: -1}"
  id[number]=$(sbatch --parsable "${@:2}")
  id[number]=${id[number]%%;*}
  echo "${script%.sbatch} ${id[number]}"
}
"""

PROLOG = r"""#!/bin/bash
# Prolog snippet (runs as root on each node) for sites where users may not set clocks: the clock stands in the job's
# comment. Call it from the site's Prolog; without a comment of pfprofile it does nothing.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
comment=${SLURM_JOB_COMMENT:-$(scontrol show job "$SLURM_JOB_ID" 2>/dev/null | sed -n 's/^ *Comment=//p')}
case "$comment" in
  pfprofile:clock=[0-9]*)
    clock=${comment#pfprofile:clock=}
    for gpu in ${SLURM_JOB_GPUS//,/ }; do
      nvidia-smi -i "$gpu" -lgc "$clock,$clock"
    done
    ;;
esac
exit 0
"""

EPILOG = r"""#!/bin/bash
# Epilog snippet (runs as root on each node, also after scancel -s KILL): no clock outlives its job.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
for gpu in ${SLURM_JOB_GPUS//,/ }; do
  nvidia-smi -i "$gpu" -rgc
done
exit 0
"""

README = """# A schedule as Slurm jobs

`./submit.sh` submits everything in order. Each `NNN-job-sK.sbatch` is one stretch of a job: the same GPUs from a start
or restart to its end or its next restart. It waits (`--dependency=afterany`) for the job's previous stretch and for
whoever held its GPUs before; `--begin` stands only where the plan waits for something else. `manifest.json` says which
script is which part of which job, its planned times, steps, GPUs and clocks.

**Clocks.** A script locks the SM clock of its own GPUs (`nvidia-smi -lgc`, then `sudo -n nvidia-smi`), changes it at
the planned times, and resets it when it ends, is cancelled or runs out of time. Where it may not, it says so and goes
on unlocked; `PFPROFILE_REQUIRE_CLOCKS=1` makes it fail instead. Where users may not set clocks, an administrator adds
`prolog.sh` and `epilog.sh` to the site's Prolog and Epilog: the first clock stands in the job's comment, and the
epilog resets the job's GPUs even after a kill. Clock changes inside a stretch then do not happen.

**Training.** Zoo workloads run `python -m pfprofile.train`, one task a GPU, and keep their state in `checkpoints/`.
A job's `command` runs once a node, with its placeholders filled in and the same values in `PFPROFILE_*`, MASTER_ADDR
and MASTER_PORT. It must go on from its own checkpoint. If it uses neither `{steps}` nor `{last_step}`, it gets TERM at
the planned end of a stretch that is not the job's last, and has 120 s to write the checkpoint.

**Which GPUs.** Nodes are as planned; which GPUs of a node are taken is Slurm's choice.
"""
