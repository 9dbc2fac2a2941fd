package agentcmd

import (
	"net"
	"net/url"
	"path"
	"path/filepath"
	"strings"
)

// nameFromURL derives a server's name from the host of its URL.
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

// nameFromCommand derives a server's name from its command: the package or script after launchers
// such as npx, uvx and node, or else the program.
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

// programName returns the last element of a path or package, without its version and extension.
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

// cleanServerName returns a server name that appears unchanged in the wire names of its tools:
// letters, digits and hyphens, without "mcp" and "server" at its ends.
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
	const most = 30 // leaves room for the tool in the 64 characters of a wire name
	return strings.TrimRight(name[:min(len(name), most)], "-")
}
