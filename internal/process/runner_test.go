package process

import (
	"strings"
	"testing"
)

func TestFindRunner(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"npx -y pkg": "npx", "/usr/bin/npx pkg": "npx", `C:\nodejs\npx.cmd|-y|pkg`: "npx", "NPX.CMD pkg": "npx",
		"node /usr/lib/node_modules/npm/bin/npx-cli.js -y pkg": "npx", "npm exec -- pkg": "npm", "npm --prefix dir exec pkg": "npm", "npm run start": "", "npm": "",
		"uvx pkg": "uvx", "uv run --with mcp server.py": "uv", "uv --version": "", "pipx run pkg": "pipx", "pnpm dlx pkg": "pnpm", "pnpm start": "",
		"bunx pkg": "bunx", "bun x pkg": "bun", "bun run server.ts": "", "yarn dlx pkg": "yarn", "docker run -i image": "docker", "docker exec c server": "",
		"go run ./cmd/server": "go", "deno run server.ts": "deno", "cargo run": "cargo", "dotnet run": "dotnet", "env A=b npx pkg": "npx",
		"bash|-c|npx -y pkg": "npx", "sh|-lc|cd /tmp && exec npx -y pkg": "npx", "cmd|/c|npx|-y|pkg": "npx", "sh|-c|npm install && node server.js": "npm",
		"sh|-c|server-everything": "", "sh|/home/u/bin/npx|-y|pkg": "npx", "python3.12 -m pipx run pkg": "pipx", "node server.js npx": "", "server": "", "python server.py": "",
	} {
		words := strings.Split(line, "|")
		if len(words) == 1 {
			words = strings.Fields(line)
		}
		if got, _ := findRunner(words); got != want {
			t.Errorf("%s: the runner is %q, want %q", line, got, want)
		}
	}
}

// The processes of an install do not count as the server's own.
func TestLook(t *testing.T) {
	t.Parallel()
	type process struct {
		line, stdin, script string
		below               bool
	}
	npx := process{line: "npm exec pkg", stdin: "p"}
	for name, tt := range map[string]struct {
		tree     []process
		serving  bool
		activity string
	}{
		"alone":               {[]process{npx}, false, ""},
		"server":              {[]process{npx, {"sh -c pkg", "p", "npx", true}}, true, ""},
		"other stdin":         {[]process{npx, {"git clone", "/dev/null", "", true}}, false, "git"},
		"lifecycle script":    {[]process{npx, {"node install.mjs", "x", "postinstall", true}}, false, "the postinstall script of dep"},
		"foreground script":   {[]process{npx, {"node install.mjs", "p", "postinstall", true}}, false, "the postinstall script of dep"},
		"bunx and bun add":    {[]process{{line: "bunx pkg", stdin: "p"}, {"bun add pkg", "p", "", true}}, false, ""},
		"shim of a manager":   {[]process{{line: "npx pkg", stdin: "p"}, {"node /n/npx-cli.js pkg", "p", "", true}}, false, ""},
		"no runner":           {[]process{{line: "node server.js", stdin: "p"}}, false, ""},
		"server below a shim": {[]process{npx, npx, {"node server.js", "p", "", true}}, true, ""},
	} {
		look := treeLook{stdin: "p"}
		for _, p := range tt.tree {
			look.noteProcess(processFacts{pid: "7", argv: strings.Fields(p.line), stdin: p.stdin, script: p.script, pkg: "dep"}, p.below)
		}
		if (look.serving != "") != tt.serving || look.activity != tt.activity {
			t.Errorf("%s: serving %v, activity %q, want %v, %q", name, look.serving, look.activity, tt.serving, tt.activity)
		}
	}
}

func TestPulls(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]bool{
		"": false, "Unable to find image 'a:latest' locally\nlatest: Pulling from a\n4abc: Download complete\n": true,
		"Unable to find image 'a:latest' locally\nlatest: Pulling from a\nDigest: sha256:1\nStatus: Downloaded newer image for a:latest\nserver runs\n": false,
	} {
		if got := dockerLog.isPending([]byte(log)); got != want {
			t.Errorf("%q: pending is %v", log, got)
		}
	}
	if !denoLog.isPending([]byte("Download https://jsr.io/a\n")) || denoLog.isPending([]byte("Download https://jsr.io/a\nready\n")) {
		t.Error("the log of deno is misread")
	}
}
