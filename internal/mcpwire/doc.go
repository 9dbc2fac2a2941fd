// Package mcpwire holds the rules of the wire that several transports, servers and gateways share
// and that programs do not need: how a message is adapted to an older revision, and how names and
// arguments are mirrored into HTTP header fields.
package mcpwire
