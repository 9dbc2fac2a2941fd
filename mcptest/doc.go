// Package mcptest holds what it takes to test servers and clients: golden transcripts of the wire, a tap that checks
// every message against its revision's schema, and a check that no goroutine is left behind.
package mcptest
