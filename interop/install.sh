#!/bin/sh
# Installs the npm peers that the tests of this module need, exactly as package-lock.json pins them.
set -eu
cd "$(dirname "$0")/node"
exec npm ci --ignore-scripts --no-audit --no-fund
