#!/bin/sh
# A server that greets its user on stdout before it speaks the protocol.
echo "Welcome to the echo server!"
echo
echo "  listening on stdio (press Ctrl-C to stop)"
printf 'INFO: {"ready": true}\n[1,2,3]\n"ready"\n42\n'
exec node "$(dirname "$0")/well-behaved.mjs"
