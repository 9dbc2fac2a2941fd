package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// checkDeclared refuses a request for which the server has not declared the capability: of a list,
// and if the client is strict, of every method of the core. Many servers forget to declare what
// they can do beyond lists. It refuses nothing if the server has not described itself.
func (c *Client) checkDeclared(method string) error {
	s := c.conn.server.Load()
	if s == nil || s.Revision == "" || !c.opts.StrictCapabilities && !isList(method) {
		return nil
	}
	capability, isDeclared := requiredCapability(method, s.Capabilities)
	if isDeclared {
		return nil
	}
	return undeclaredError(fmt.Sprintf("the server does not declare %s, %s", capability, describeCapabilities(s.Capabilities)))
}

// undeclaredError refuses a request that the server has not declared. It matches
// [errors.ErrUnsupported].
type undeclaredError string

func (e undeclaredError) Error() string { return string(e) }

// Is implements the interface that [errors.Is] looks for.
func (undeclaredError) Is(target error) bool { return target == errors.ErrUnsupported }

func isList(method string) bool {
	switch method {
	case mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates:
		return true
	}
	return false
}

// requiredCapability returns the capability that a method of the core needs, and whether c has it.
// Other methods need none.
func requiredCapability(method string, c mcp.ServerCapabilities) (name string, isDeclared bool) {
	switch method {
	case mcp.MethodListTools, mcp.MethodCallTool:
		return "tools", c.Tools != nil
	case mcp.MethodListPrompts, mcp.MethodGetPrompt:
		return "prompts", c.Prompts != nil
	case mcp.MethodListResources, mcp.MethodListResourceTemplates, mcp.MethodReadResource:
		return "resources", c.Resources != nil
	case mcp.MethodComplete:
		return "completions", c.Completions != nil
	case mcpwire.MethodSetLevel:
		return "logging", c.Logging != nil
	}
	return "", true
}

// describeCapabilities lists the declared capabilities, such as "only tools and logging".
func describeCapabilities(c mcp.ServerCapabilities) string {
	var names []string
	for _, method := range []string{mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodComplete, mcpwire.MethodSetLevel} {
		if name, isDeclared := requiredCapability(method, c); isDeclared {
			names = append(names, name)
		}
	}
	switch n := len(names); n {
	case 0:
		return "nor any other capability"
	case 1:
		return "only " + names[0]
	default:
		return "only " + strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}
