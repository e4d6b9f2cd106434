#!/usr/bin/env bash
# Runs every benchmark, one after the other on one core, and keeps what each printed in out/bench/NAME.jsonl.
# usage: tools/bench.sh BUILD VENV
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
venv=$2
mkdir -p out/bench
pin=()
if command -v taskset >/dev/null; then pin=(taskset -c 0); fi

shopt -s nullglob
programs=("$build"/bin/*_bench)
scripts=(bench/*_bench.py)
if [[ $((${#programs[@]} + ${#scripts[@]})) -eq 0 ]]; then
  echo "tools/bench.sh: no benchmarks in $build/bin or bench/" >&2
  exit 1
fi
for program in "${programs[@]}"; do
  echo "-- $(basename "$program")"
  "${pin[@]}" "$program" | tee "out/bench/$(basename "$program").jsonl"
done
for script in "${scripts[@]}"; do
  echo "-- $script"
  TARSUS_BENCH="$build/bin" "${pin[@]}" "$venv/bin/python" "$script" | tee "out/bench/$(basename "$script" .py).jsonl"
done
echo "-- results are in out/bench/"
