#!/usr/bin/env bash
# Runs a command as a named stage of a task and notes when it began and ended, for tools/times.py.
# usage: tools/stage.sh STAGES.tsv NAME COMMAND [ARGUMENT ...]
set -euo pipefail
stages=$1
name=$2
shift 2
mkdir -p "$(dirname "$stages")"
begin=$(date +%s.%N)
status=0
"$@" || status=$?
printf '%s\t%s\t%s\n' "$name" "$begin" "$(date +%s.%N)" >>"$stages"
exit "$status"
