// Package skills is the extension io.modelcontextprotocol/skills (SEP-2640): a [Folder] serves the
// skills in a folder, and [List], [Get], [Directory] and [Skill.Read] use the skills of a server.
// The public package skills is a part of it.
package skills
