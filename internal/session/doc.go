// Package session stores conversations, so that they can be continued. Each has a file of JSON
// lines:
//
//	{"session":{"version":1,"id":"20260102-150405-1a2b","began":"…","folder":"/home/ada/notes","model":"qwen3"}}
//	{"at":"…","message":{"role":"user","content":[{"type":"text","text":"hello"}]}}
//	{"at":"…","message":{"role":"assistant","content":[…]}}
//	{"at":"…","result":{"type":"tool_result","toolUseId":"call_1","content":[…]}}
//	{"at":"…","keep":2}
//	{"at":"…","prompt":{"system":"…","tools":[…],"same":3}}
//	{"at":"…","event":"model","data":{"name":"big"}}
//	{"at":"…","event":"mode","data":{"mode":"read-only"}}
//
// The first line describes the session. A message adds to the conversation, and to its last message
// if that has the same role. A result belongs to a call of the last reply; the results together are
// the next message of the user, in the order of the calls. keep drops all but the first messages,
// as after a conversation has been compacted. An event is for people, and not part of the
// conversation. A prompt is a request to a model. It has the first messages of the conversation so
// far, as many as same says, and then its own. The text before the messages and the tools are left
// out if they are the same as in the last prompt.
//
// Each line is written immediately and with one write, so a program that crashes loses at most the
// line that it was writing. Reading skips an incomplete line, and adds an error as the result of
// each call without one, since providers refuse such calls. Files have the permissions 0600, and
// new folders 0700, since conversations may hold secrets.
package session
