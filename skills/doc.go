// Package skills serves and reads Agent Skills (agentskills.io) over MCP: the extension
// io.modelcontextprotocol/skills (SEP-2640) of revision 2026-07-28. A skill is a folder with the file
// SKILL.md, which tells a model how to do something, and any files that it refers to.
//
// A server serves a folder of skills. The files are resources under skill://:
//
//	folder, err := skills.Open("./skills", nil)
//	defer folder.Close()
//	s := server.New("docs", "1.0.0", &server.Options{Extensions: []mcp.Extension{skills.Extension()}})
//	err = folder.AddTo(s)
//
// A client lists the skills of a server without reading any file, and reads files when it needs
// them. Each file is compared with the digest and the size in the skill's entry, and SKILL.md with
// its frontmatter:
//
//	for skill, err := range skills.List(ctx, c) {
//		fmt.Println(skill.Name(), skill.Description())
//	}
//	text, err := skill.Load(ctx, c)                      // SKILL.md
//	form, err := skill.Read(ctx, c, "references/FORMS.md")
//
// The digests come from the server that sends the files. They show that a file is the one that the
// entry describes, and not that the server can be trusted: treat a skill as text of a stranger.
package skills
