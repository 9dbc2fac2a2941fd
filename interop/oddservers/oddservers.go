// Package oddservers lists the badly behaved servers of this folder, with the expected outcome of a
// call of each.
//
// Every server has one tool, echo, which returns the argument message. A comment in each script
// describes how the server differs from the one in server.mjs.
package oddservers

import "time"

// Server is a server, with the expected outcome of a call of its tool.
type Server struct {
	// Script is the file in this folder that starts the server: with node for .mjs, with sh for
	// .sh.
	Script string
	// Fails is a regular expression that the client's error must match. If it is empty, the call
	// must succeed.
	Fails string
	// Limit bounds the whole call, from the start of the server to the end of its last process.
	Limit time.Duration
	// Modern is set for a server that refuses the legacy handshake.
	Modern bool
	// Why is the rule that the outcome follows from.
	Why string
}

// Limits of a call.
const (
	quick = 10 * time.Second // the call waits for nothing
	slow  = 20 * time.Second // it may wait for a probe, or for a process that does not end by itself
)

// All are the servers of this folder.
var All = []Server{
	{Script: "well-behaved.mjs", Limit: quick, Why: "a legacy server that does nothing wrong, for comparison"},
	{Script: "well-behaved-modern.mjs", Limit: quick, Modern: true, Why: "a modern server that does nothing wrong, for comparison"},

	{Script: "dies-of-unknown-method.mjs", Limit: quick, Why: "the probe kills it; the client starts it again without probing"},
	{Script: "dies-of-early-request.mjs", Limit: quick, Why: "the same for any first request that is not initialize"},
	{Script: "never-answers-probe.mjs", Limit: slow, Why: "the client stops waiting for the probe and initializes"},
	{Script: "answers-null-id.mjs", Limit: slow, Why: "an error without an id answers nothing, and breaks nothing"},
	{Script: "error-is-a-string.mjs", Limit: slow, Why: "an error of the wrong shape is still an error"},
	{Script: "late-discover.mjs", Limit: slow, Modern: true, Why: "a late DiscoverResult still decides the era"},
	{Script: "cold-start.mjs", Limit: slow, Why: "the client waits for a server that starts slowly"},
	{Script: "older-revision.mjs", Limit: quick, Why: "the client accepts any revision that it knows"},
	{Script: "unknown-revision.mjs", Limit: quick, Fails: `1999-12-31`, Why: "and names a revision that it does not know"},

	{Script: "banner.sh", Limit: quick, Why: "lines on stdout that are not messages are skipped, even if they are JSON"},
	{Script: "garbage-between.mjs", Limit: quick, Why: "a malformed line does not affect the next one"},
	{Script: "answers-twice.mjs", Limit: quick, Why: "a second answer is dropped"},
	{Script: "string-ids.mjs", Limit: slow, Why: "an id of the wrong type is still recognised"},
	{Script: "wrong-jsonrpc-version.mjs", Limit: slow, Fails: `(?i)json-?rpc`, Why: "an answer of another JSON-RPC version is an error at once"},
	{Script: "latin-1.mjs", Limit: quick, Fails: `(?i)UTF-8`, Why: "an answer that cannot be read ends its call"},
	{Script: "drips.mjs", Limit: quick, Why: "a message may arrive in many pieces"},
	{Script: "crlf.mjs", Limit: quick, Why: "a carriage return is white space"},
	{Script: "huge-line.mjs", Limit: slow, Fails: `(?i)16 ?MiB|(line|message|frame).*(too (large|long|big)|exceeds|limit)`, Why: "a line has a limit, and the error names it"},
	{Script: "pings-first.mjs", Limit: quick, Why: "a server may send a request during a call"},
	{Script: "asks-unknown-things.mjs", Limit: quick, Why: "a request with an unknown method gets an error"},
	{Script: "one-page-forever.mjs", Limit: slow, Why: "a call does not need the whole list; a list that repeats its cursor ends"},

	{Script: "exits-at-once.sh", Limit: quick, Fails: `missing-module-of-test`, Why: "the error contains the last line of stderr"},
	{Script: "dies-mid-line.mjs", Limit: quick, Fails: `(?i)exit|ended|closed|EOF|died`, Why: "a call ends with its server"},
	{Script: "closes-stdout.mjs", Limit: slow, Fails: `(?i)exit|ended|closed|EOF|died`, Why: "a call ends with its server's stdout"},
	{Script: "grandchild-holds-pipe.sh", Limit: quick, Why: "the client does not wait for an open pipe, and the grandchild ends too"},
	{Script: "immortal.mjs", Limit: slow, Why: "a server that ignores signals is killed"},
	{Script: "floods-stderr.mjs", Limit: slow, Why: "stderr is read at all times, so it never blocks stdout"},
}

// Command returns the command that starts the server. folder is the path of this folder.
func (s Server) Command(folder string) []string {
	program := "node"
	if s.Script[len(s.Script)-3:] == ".sh" {
		program = "sh"
	}
	return []string{program, folder + "/" + s.Script}
}
