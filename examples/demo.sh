#!/bin/sh
# The whole chain on real input. Usage: sh examples/demo.sh FOLDER (emptied first). Needs pfprofile on PATH.
set -eu
folder=${1:?"usage: demo.sh FOLDER"}
examples=$(cd "$(dirname "$0")" && pwd)
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"

step() { printf '\n$ %s\n' "$*"; "$@"; }

echo "1. Measure a real training job on this machine's CPU, fit it, predict."
step pfprofile sweep resnet18 --device cpu --gpus 1,2 --batch-sizes 1,2,4 --image-size 32 -o cpu/resnet18.parquet
step pfprofile fit cpu/resnet18.parquet -o cpu/resnet18.json
step pfprofile predict cpu/resnet18.json --gpus 1,2 --batch-sizes 1,2,4

echo
echo "2. No GPU here? Replay a shipped (synthetic) A100 profile instead, fit it, plan four jobs under 6 kWh."
step pfprofile sweep resnet50 --freqs auto --replay a100-sxm4/resnet50
step pfprofile fit
step pfprofile plan --jobs "$examples/jobs.toml" --cluster "$examples/cluster.toml" --budget 6kWh
step pfprofile report schedule.json models/a100-sxm4/resnet50.json profiles/a100-sxm4/resnet50.parquet -o report.html

echo
echo "Everything is in $folder/; open $folder/report.html."
