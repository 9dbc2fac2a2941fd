// Package session keeps conversations in files, so that they can be gone on with: a file each, of JSON lines.
//
//	{"session":{"version":1,"id":"20260102-150405-1a2b","began":"…","folder":"/home/ada/notes","model":"qwen3"}}
//	{"at":"…","message":{"role":"user","content":[{"type":"text","text":"hello"}]}}
//	{"at":"…","message":{"role":"assistant","content":[…]}}
//	{"at":"…","result":{"type":"tool_result","toolUseId":"call_1","content":[…]}}
//	{"at":"…","keep":2}
//	{"at":"…","event":"model","data":{"name":"big"}}
//
// The first line says what the session is. A message adds to the conversation: to its last message, where that is of the same
// role. A result is that of a call of the last reply; together they are the user's message behind it, in the order of the calls.
// keep says that only so many messages of those above still count, as when a conversation has been compacted. An event is for
// people, and no part of the conversation.
//
// Each line is written at once when it happens, and with one write: a program that ends in the middle loses the line that it was
// writing, and no other. Such a line is passed over when the file is read, and calls whose results are missing get one that says
// so, since providers refuse a conversation without. Files have the permissions 0600, and a folder that is made for them 0700:
// what was said, and what tools have returned, may be secret.
package session
