#!/usr/bin/env bash
# The hashes of tests/hashes/state_hashes.cpp for each instruction set that this machine runs, and for other builds of it,
# side by side; exit status 1 where two differ that docs/decisions/0006-the-same-bits.md promises to be equal.
# usage: tools/state_hashes.sh PROGRAM [NAME=PROGRAM ...]     NAME=PROGRAM: another build, run at its best set; with an
#        emulator: 'NAME=qemu-aarch64 -L ROOT PROGRAM'
set -euo pipefail
program=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
names=()
for level in baseline avx2 avx512; do
  if TARSUS_ISA_LEVEL=$level "$program" >"$work/$level" 2>"$work/said" && grep -q "kernels: $level\$" "$work/said"; then
    names+=("$level")
  else
    echo "skipped: $level, which this machine or this build does not have"
  fi
done
for other in "$@"; do
  name=${other%%=*}
  # shellcheck disable=SC2086
  ${other#*=} >"$work/$name" 2>/dev/null
  names+=("$name")
done
awk '{ print substr($0, 1, 35) }' "$work/${names[0]}" >"$work/table"
header=$(printf '%-36s' 'run')
for name in "${names[@]}"; do
  awk '{ print $NF }' "$work/$name" | paste -d ' ' "$work/table" - >"$work/next"
  mv "$work/next" "$work/table"
  header+=$(printf '%-17s' "$name")
done
echo "$header"
cat "$work/table"
# All but the baseline, which has no fused multiply-add, are equal to one another.
status=0
reference=
for name in "${names[@]}"; do
  if [[ $name == baseline* ]]; then continue; fi
  if [[ -z $reference ]]; then reference=$name; continue; fi
  if ! cmp -s "$work/$reference" "$work/$name"; then
    echo "DIFFERENT: $reference and $name in $(diff "$work/$reference" "$work/$name" | grep -c '^<') runs"
    status=1
  fi
done
[[ $status -eq 0 ]] && echo "equal: ${names[*]/baseline/}"
exit $status
