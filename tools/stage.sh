#!/usr/bin/env bash
# Runs a command as a named stage of a task and notes when it began and ended and what processor time it took, for
# tools/times.py.
# usage: tools/stage.sh STAGES.tsv NAME COMMAND [ARGUMENT ...]
set -euo pipefail
stages=$1
name=$2
shift 2
mkdir -p "$(dirname "$stages")"
begin=$(date +%s.%N)
status=0
"$@" || status=$?
times >"$stages.$$"  # not into a pipe, which would be a shell of its own
used=$(tail -n 1 "$stages.$$" | tr 'ms' '  ' | awk '{ print 60 * $1 + $2 + 60 * $3 + $4 }')
rm "$stages.$$"
printf '%s\t%s\t%s\t%s\n' "$name" "$begin" "$(date +%s.%N)" "$used" >>"$stages"
exit "$status"
