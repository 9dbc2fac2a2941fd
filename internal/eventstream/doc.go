// Package eventstream reads and writes server-sent events (WHATWG HTML, section 9.2) as MCP uses them: [Reader] takes a
// response apart, [Writer] owns one.
package eventstream
