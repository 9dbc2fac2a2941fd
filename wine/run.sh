#!/bin/sh
# Runs a Windows program with Wine, for go test -exec. The program writes to a file: Wine's own processes outlive it and would
# keep a pipe open.
. "$(dirname "$0")/folder.sh"
output=$(mktemp)
trap 'rm -f "$output"' EXIT
status=0
wine "$@" </dev/null >"$output" 2>&1 || status=$?
cat "$output"
exit $status
