// Package eventstream reads and writes server-sent events (WHATWG HTML, section 9.2) for MCP. A
// [Reader] parses the events of a response. A [Writer] turns the response of an http.Handler into a
// stream: it is safe for concurrent use, keeps idle streams alive, bounds its queue, and cuts off
// clients that do not read. An idle stream costs neither a goroutine nor a buffer.
package eventstream
