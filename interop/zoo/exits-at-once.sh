#!/bin/sh
# A server that cannot start and says why.
echo "Error: Cannot find module 'zoo-missing-module'" >&2
exit 127
