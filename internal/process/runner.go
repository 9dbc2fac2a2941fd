package process

import (
	"path/filepath"
	"slices"
	"strings"
)

// runnerVerbs lists the package runners: programs that install a package and then start it. For a
// program with other uses it lists the subcommands that install; nil means that every use does.
var runnerVerbs = map[string][]string{
	"npx": nil, "pnpx": nil, "bunx": nil, "uvx": nil, "dnx": nil, "jbang": nil,
	"npm":    {"exec", "x", "install", "i", "ci", "init", "create"},
	"pnpm":   {"dlx", "install", "i", "add", "create"},
	"yarn":   {"dlx", "install", "add", "create"},
	"bun":    {"x", "install", "i", "add", "create"},
	"uv":     {"run", "tool", "sync", "pip"},
	"pipx":   {"run", "install"},
	"docker": {"run"}, "podman": {"run"}, "nerdctl": {"run"},
	"go": {"run", "build", "install"}, "deno": {"run", "serve", "install"}, "cargo": {"run", "build", "install"},
	"dotnet": {"run", "tool", "dnx", "build", "restore"}, "nix": {"run", "shell", "develop", "build"},
}

// runnerFiles are names under which a runner appears in process lists, other than its own.
var runnerFiles = map[string]string{"npx-cli": "npx", "npm-cli": "npm", "yarnpkg": "yarn"}

// launchers are programs that run the program which their arguments name.
var launchers = []string{"node", "nodejs", "env", "exec", "command", "nice", "ionice", "nohup", "time", "corepack", "caffeinate", "sudo", "doas", "java"}

// shellNames are programs that run a script which one argument holds.
var shellNames = []string{"sh", "bash", "dash", "zsh", "ash", "ksh", "fish", "cmd", "powershell", "pwsh"}

// findRunner returns the package runner that a command line starts, by name, and the command line
// from the runner on. The name is "" if there is none. It looks through launchers and into the
// scripts of shells.
func findRunner(words []string) (name string, line []string) {
	for len(words) > 0 {
		base := programBase(words[0])
		verbs, isRunner := runnerVerbs[base]
		switch {
		case isRunner && (verbs == nil || hasVerb(words[1:], verbs)):
			return base, words
		case isRunner:
			return "", nil
		case slices.Contains(shellNames, base):
			if script, ok := shellScript(words[1:]); ok {
				return findScriptRunner(script)
			}
			words = skipOptions(words[1:])
		case slices.Contains(launchers, base) || strings.HasPrefix(base, "python"):
			words = skipOptions(words[1:])
		default:
			return "", nil
		}
	}
	return "", nil
}

// programBase returns the name of a program without its folder and extension.
func programBase(word string) string {
	base := strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:])
	switch ext := filepath.Ext(base); ext {
	case ".exe", ".cmd", ".bat", ".ps1", ".js", ".cjs", ".mjs":
		base = strings.TrimSuffix(base, ext)
	}
	if name, ok := runnerFiles[base]; ok {
		return name
	}
	return base
}

// hasVerb reports whether the first word that is neither an option nor its value is one of verbs.
func hasVerb(words, verbs []string) bool {
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "-"):
		case slices.Contains(verbs, w):
			return true
		case i == 0 || !strings.HasPrefix(words[i-1], "-"):
			return false
		}
	}
	return false
}

// shellScript returns the script in the arguments of a shell.
func shellScript(words []string) (string, bool) {
	for i, w := range words {
		switch {
		case strings.EqualFold(w, "/c"), strings.EqualFold(w, "-command"), len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.HasSuffix(w, "c"):
			return strings.Join(words[i+1:], " "), true
		case !strings.HasPrefix(w, "-") && (!strings.HasPrefix(w, "/") || len(w) > len("/d")):
			return "", false
		}
	}
	return "", false
}

// findScriptRunner is findRunner for the commands of a script.
func findScriptRunner(script string) (name string, line []string) {
	for _, command := range strings.FieldsFunc(script, func(r rune) bool { return strings.ContainsRune(";&|\n", r) }) {
		words := strings.Fields(command)
		for i, w := range words {
			words[i] = strings.Trim(w, `"'`)
		}
		if name, line = findRunner(skipOptions(words)); name != "" {
			return name, line
		}
	}
	return "", nil
}

// skipOptions returns words from the first one that is neither an option nor a variable.
func skipOptions(words []string) []string {
	i := slices.IndexFunc(words, func(w string) bool {
		return w != "" && !strings.HasPrefix(w, "-") && (!strings.Contains(w, "=") || strings.ContainsAny(w[:strings.Index(w, "=")], `/\`))
	})
	if i < 0 {
		return nil
	}
	return words[i:]
}

// Runner returns the package runner that the command starts, such as npx, or "". A runner may have
// to install the server before it starts it.
func (c Command) Runner() string {
	name, _ := findRunner(append([]string{c.Path}, c.Args...))
	return name
}
