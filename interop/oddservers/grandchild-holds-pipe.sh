#!/bin/sh
# A server that ends with its stdin, but leaves a grandchild behind that holds its stdout and stderr open.
sleep 300 </dev/null &
exec node "$(dirname "$0")/well-behaved.mjs"
