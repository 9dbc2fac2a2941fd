package agentcmd

import (
	"net"
	"net/url"
	"path"
	"path/filepath"
	"strings"
)

// nameFromURL calls a server by its host.
func nameFromURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "server"
	}
	host := strings.TrimPrefix(u.Hostname(), "www.")
	if net.ParseIP(host) != nil {
		return "server"
	}
	first, rest, _ := strings.Cut(host, ".")
	if generic := first == "mcp" || first == "api"; generic && rest != "" {
		first, _, _ = strings.Cut(rest, ".")
	}
	return cleanServerName(first)
}

// nameFromCommand calls a server by its package or program: that behind npx, uvx, node and their like.
func nameFromCommand(command []string) string {
	word := command[0]
	for _, arg := range command[1:] {
		switch programName(word) {
		case "npx", "bunx", "pnpm", "pnpx", "yarn", "uvx", "uv", "pipx", "node", "bun", "deno", "python", "python3", "env", "go", "docker", "run", "exec", "dlx", "x", "dowel", "serve":
			if !strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") {
				word = arg
			}
			continue
		}
		break
	}
	return cleanServerName(programName(word))
}

// programName is the last element of a path or package, without what says of what kind it is.
func programName(word string) string {
	word = path.Base(filepath.ToSlash(word))
	if at := strings.Index(word, "@"); at > 0 { // a version
		word = word[:at]
	}
	for _, end := range []string{".exe", ".js", ".mjs", ".py", ".ts", ".go"} {
		word = strings.TrimSuffix(word, end)
	}
	return word
}

// cleanServerName makes a server's name that stands in the names of tools as it is.
func cleanServerName(name string) string {
	for _, part := range []string{"mcp-server-", "server-", "mcp-"} {
		name = strings.TrimPrefix(name, part)
	}
	for _, part := range []string{"-mcp-server", "-mcp", "-server"} {
		name = strings.TrimSuffix(name, part)
	}
	name = strings.Trim(strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z') {
			return r
		}
		return '-'
	}, name), "-")
	if name == "" || name == "dowel" {
		return "server"
	}
	return truncateName(name)
}

func truncateName(name string) string {
	const most = 30 // of the 64 that a tool's name may have
	return strings.TrimRight(name[:min(len(name), most)], "-")
}
