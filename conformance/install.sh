#!/bin/sh
# Installs the conformance suite and the Node that runs it, exactly as package-lock.json pins them.
set -eu
cd "$(dirname "$0")/suite"
exec npm ci --ignore-scripts --no-audit --no-fund
