// Package zoo names the badly behaved servers of this folder and says what a client must do with
// each.
//
// Every animal, as the servers are called here, has one tool, echo, which returns the argument
// message. Comments in the scripts describe what is wrong with each server.
package zoo

import "time"

// Animal is a server, with the expected outcome of a call of its tool.
type Animal struct {
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
	// Why names the behaviour that the animal tests.
	Why string
}

// Limits of a call.
const (
	quick = 10 * time.Second // the call waits for nothing
	slow  = 20 * time.Second // it may wait for a probe, or for a process that does not end by itself
)

// Animals are the servers of this folder.
var Animals = []Animal{
	{Script: "well-behaved.mjs", Limit: quick, Why: "the control of all legacy animals"},
	{Script: "well-behaved-modern.mjs", Limit: quick, Modern: true, Why: "the control of the modern ones"},

	{Script: "dies-of-unknown-method.mjs", Limit: quick, Why: "the probe kills it; the client starts it again without probing"},
	{Script: "dies-of-early-request.mjs", Limit: quick, Why: "the same, as servers do that insist on initialize first"},
	{Script: "never-answers-probe.mjs", Limit: slow, Why: "the client stops waiting for the probe and initializes"},
	{Script: "answers-null-id.mjs", Limit: slow, Why: "an error without an id answers nothing, and breaks nothing"},
	{Script: "error-is-a-string.mjs", Limit: slow, Why: "an error of the wrong shape is still an error"},
	{Script: "late-discover.mjs", Limit: slow, Modern: true, Why: "a DiscoverResult wins, however late it comes"},
	{Script: "cold-start.mjs", Limit: slow, Why: "slow is not dead"},
	{Script: "older-revision.mjs", Limit: quick, Why: "the server's revision is taken where it is known"},
	{Script: "unknown-revision.mjs", Limit: quick, Fails: `1999-12-31`, Why: "and refused by name where it is not"},

	{Script: "banner.sh", Limit: quick, Why: "stray lines on stdout are skipped, JSON ones too"},
	{Script: "garbage-between.mjs", Limit: quick, Why: "one bad line costs one line"},
	{Script: "answers-twice.mjs", Limit: quick, Why: "an answer that nobody waits for is dropped"},
	{Script: "string-ids.mjs", Limit: slow, Why: "an id of the wrong type is still recognised"},
	{Script: "wrong-jsonrpc-version.mjs", Limit: slow, Fails: `(?i)json-?rpc`, Why: "what is not JSON-RPC 2.0 is named, not waited for"},
	{Script: "latin-1.mjs", Limit: quick, Fails: `(?i)UTF-8`, Why: "an answer that cannot be read ends its call"},
	{Script: "drips.mjs", Limit: quick, Why: "a message may come in many pieces"},
	{Script: "crlf.mjs", Limit: quick, Why: "a carriage return is white space"},
	{Script: "huge-line.mjs", Limit: slow, Fails: `(?i)16 ?MiB|(line|message|frame).*(too (large|long|big)|exceeds|limit)`, Why: "a line is bounded, and the bound is named"},
	{Script: "pings-first.mjs", Limit: quick, Why: "a server may ask while it is asked"},
	{Script: "asks-unknown-things.mjs", Limit: quick, Why: "what the client does not know is refused, not ignored"},
	{Script: "one-page-forever.mjs", Limit: slow, Why: "a call does not need the whole list; a list that repeats its cursor ends"},

	{Script: "exits-at-once.sh", Limit: quick, Fails: `zoo-missing-module`, Why: "what the server said last is in the error"},
	{Script: "dies-mid-line.mjs", Limit: quick, Fails: `(?i)exit|ended|closed|EOF|died`, Why: "a call does not outlive its server"},
	{Script: "closes-stdout.mjs", Limit: slow, Fails: `(?i)exit|ended|closed|EOF|died`, Why: "nor its server's stdout"},
	{Script: "grandchild-holds-pipe.sh", Limit: quick, Why: "an open pipe does not keep the client, and the grandchild ends too"},
	{Script: "immortal.mjs", Limit: slow, Why: "what does not end politely is killed"},
	{Script: "floods-stderr.mjs", Limit: slow, Why: "stderr is drained, and never holds up stdout"},
}

// Command returns the command that starts the animal. folder is the path of this folder.
func (a Animal) Command(folder string) []string {
	program := "node"
	if a.Script[len(a.Script)-3:] == ".sh" {
		program = "sh"
	}
	return []string{program, folder + "/" + a.Script}
}
