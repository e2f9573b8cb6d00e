#!/bin/bash
# Inside the virtual cluster: are all scripts accepted, do they run in order, does a cancelled one reset its clocks?
set -u
folder=$1
cd "$folder"
for script in plan/*.sbatch; do
  sbatch --test-only "$script" >> accepted.log 2>&1
  echo "$(basename "$script") $?" >> accepted.txt
done
idle() { for _ in $(seq 300); do [ -z "$(squeue -h)" ] && return 0; sleep 0.1; done; squeue; return 1; }
(cd /; PATH="$folder/bin:$PATH" "$folder/run/submit.sh") > submitted.txt 2>&1
idle && echo done > finished.txt

began() { for _ in $(seq 100); do grep -qs "begun $1" events.txt && return 0; sleep 0.1; done; return 1; }
cp nvidia-smi.txt nvidia-smi-run.txt
cp events.txt run-events.txt
: > events.txt
: > nvidia-smi.txt
script=$(ls long/*-victim-*.sbatch)
id=$(cd long && mkdir -p logs && sbatch --parsable "$(basename "$script")")
began victim
scancel "$id"
idle
cp nvidia-smi.txt nvidia-smi-cancel.txt
: > nvidia-smi.txt
: > events.txt
id=$(cd long && sbatch --parsable "$(basename "$script")")
began victim
scancel -s KILL --full "$id"
idle
for _ in $(seq 50); do grep -qs -- -rgc nvidia-smi.txt && break; sleep 0.1; done
cp nvidia-smi.txt nvidia-smi-kill.txt
