#!/usr/bin/env bash
# Runs every fuzzer of a build tree for some seconds each. A finding ends the script with the input that caused it.
# usage: tools/fuzz.sh BUILD SECONDS
#
# fuzz/corpus/NAME/ holds seeds, fuzz/NAME.dict words of the format, when there are any; what a run learns is kept in
# BUILD/corpus/NAME/ for the next one. Limits are those of the readers' promise: a second and 256 MB for an input
# (the sanitizers take about four times the memory and ten times the time).
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
seconds=$2

shopt -s nullglob
fuzzers=("$build"/bin/*_fuzz)
if [[ ${#fuzzers[@]} -eq 0 ]]; then
  echo "tools/fuzz.sh: no fuzzers in $build/bin" >&2
  exit 1
fi
for fuzzer in "${fuzzers[@]}"; do
  name=$(basename "$fuzzer" _fuzz)
  corpus=("$build/corpus/$name")
  findings=$build/findings/$name
  mkdir -p "${corpus[0]}" "$findings"
  if [[ -d fuzz/corpus/$name ]]; then corpus+=("fuzz/corpus/$name"); fi
  options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$findings/" -print_final_stats=1)
  if [[ -f fuzz/$name.dict ]]; then options+=(-dict="fuzz/$name.dict"); fi
  echo "-- fuzzing $name for $seconds s"
  log=$build/$name.log
  if ! "$fuzzer" "${options[@]}" "${corpus[@]}" >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "tools/fuzz.sh: $name found something; the input is in $findings, the whole log in $log" >&2
    exit 1
  fi
  grep -E '^stat::(number_of_executed_units|new_units_added|slowest_unit_time_sec|peak_rss_mb)' "$log" | sed 's/^stat::/   /'
done
echo "-- ${#fuzzers[@]} fuzzers, $seconds s each, no findings"
