#!/bin/sh
# Installs the conformance suite and the Node that runs it, exactly as package-lock.json pins them, unless they are there.
set -eu
cd "$(dirname "$0")/suite"
installed=node_modules/.package-lock.json # npm writes it last
if [ "$installed" -nt package-lock.json ] && [ "$installed" -nt package.json ]; then exit 0; fi
exec npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
