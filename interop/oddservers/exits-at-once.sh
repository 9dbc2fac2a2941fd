#!/bin/sh
# A server that cannot start and says why.
echo "Error: Cannot find module 'missing-module-of-test'" >&2
exit 127
