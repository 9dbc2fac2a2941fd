package mcpwire

import "github.com/dowel-mcp/dowel/mcp"

// Names of the extension io.modelcontextprotocol/skills (SEP-2640,
// github.com/modelcontextprotocol/ext-skills).
const (
	ExtensionSkills = "io.modelcontextprotocol/skills"

	MethodListSkills    = "skills/list"
	MethodGetSkill      = "skills/get"
	MethodReadDirectory = "resources/directory/read"
)

// OffersSkills reports whether a server declares the extension of skills.
func OffersSkills(c mcp.ServerCapabilities) bool {
	_, declared := c.Extensions[ExtensionSkills]
	return declared
}
