package registry

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/install"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// runner is a program that installs and starts the packages of one type.
type runner struct {
	command string
	// words returns the words after the command and before the arguments of the package. runtime
	// are the runtime arguments of the document, env the names of the server's variables.
	words func(p pkg, runtime []string, env []string) []string
	// usualBase are the base URLs of the registry that the runner asks anyway.
	usualBase []string
	// baseVariable is the environment variable for another base URL, or "".
	baseVariable string
}

var runners = map[string]runner{
	"npm": {command: "npx", usualBase: []string{"https://registry.npmjs.org"}, baseVariable: "npm_config_registry",
		words: func(p pkg, runtime, _ []string) []string {
			if !slices.Contains(runtime, "-y") && !slices.Contains(runtime, "--yes") {
				runtime = append([]string{"-y"}, runtime...)
			}
			return append(runtime, p.Identifier+"@"+p.Version)
		}},
	"pypi": {command: "uvx", usualBase: []string{"https://pypi.org", "https://pypi.org/simple"}, baseVariable: "UV_DEFAULT_INDEX",
		words: func(p pkg, runtime, _ []string) []string { return append(runtime, p.Identifier+"@"+p.Version) }},
	"nuget": {command: "dnx", usualBase: []string{"https://api.nuget.org", "https://api.nuget.org/v3/index.json"},
		words: func(p pkg, runtime, _ []string) []string {
			return append(runtime, p.Identifier+"@"+p.Version, "--yes", "--")
		}},
	"oci": {command: "docker", usualBase: []string{"https://docker.io", "https://ghcr.io"},
		words: func(p pkg, runtime, env []string) []string {
			words := []string{"run", "-i", "--rm"}
			for _, name := range env {
				words = append(words, "-e", name)
			}
			image := p.Identifier
			if last := image[strings.LastIndex(image, "/")+1:]; p.Version != "" && !strings.ContainsAny(last, ":@") {
				image += ":" + p.Version
			}
			return append(append(words, runtime...), image)
		}},
}

// Identifiers and versions are words of a command line. Their form leaves no room for options,
// paths, URLs, ranges and tags that move.
var (
	identifierPatterns = map[string]func() *regexp.Regexp{
		"npm":   lazyregexp.New(`^(@[a-z0-9~][a-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*$`),
		"pypi":  lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`),
		"nuget": lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`),
		"oci":   lazyregexp.New(`^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9._-]*)?(@sha256:[a-f0-9]{64})?$`),
	}
	versionPatterns = map[string]func() *regexp.Regexp{
		"npm":   lazyregexp.New(`^[0-9]+\.[0-9]+\.[0-9]+([-+][A-Za-z0-9.+-]+)?$`),
		"pypi":  lazyregexp.New(`^([0-9]+!)?[0-9][A-Za-z0-9.+_-]*$`),
		"nuget": lazyregexp.New(`^[0-9]+(\.[0-9]+)+([-+][A-Za-z0-9.+-]+)?$`),
		"oci":   lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`),
	}
	digestPattern = lazyregexp.New(`^[a-f0-9]{64}$`)
)

// riskyVariable matches variables that change what a runner or a program loads.
var riskyVariable = lazyregexp.New(`(?i)^(npm_config_.*|uv_.*|pip_.*|docker_.*|ld_.*|dyld_.*|node_options|path|pythonpath|pythonstartup|pythonhome|bash_env|env|dotnet_startup_hooks)$`)

// openingOptions are options of docker run that open this machine to a container.
var openingOptions = lazyregexp.New(`^(--privileged|-v|--volume|--mount|--network|--net|--cap-add|--device|--pid|--ipc|--userns|--security-opt|--entrypoint)(=.*)?$`)

// planPackage plans running a package.
func (w *Way) planPackage(p pkg) {
	r, ok := runners[p.Type]
	w.Unsupported = unsupportedPackage(p, ok)
	w.Warnings = append(slices.Clip(w.Warnings), describeRisks(p)...)
	var c collector
	env := c.table(p.Environment)
	runtime, arguments := c.arguments(p.RuntimeArguments), c.arguments(p.PackageArguments)
	w.Inputs = c.inputs
	if w.Unsupported != "" || p.Type == "mcpb" {
		return // package bundle plans a bundle
	}
	w.Build = func(v install.Values) config.Spec {
		values := env(v)
		var names []string
		for _, kv := range p.Environment {
			if _, ok := values[kv.Name]; ok {
				names = append(names, kv.Name)
			}
		}
		if p.BaseURL != "" && r.baseVariable != "" && !slices.Contains(r.usualBase, strings.TrimSuffix(p.BaseURL, "/")) {
			values[r.baseVariable] = install.Escape(p.BaseURL)
		}
		words := append(r.words(p, runtime(v), names), arguments(v)...)
		if p.Type == "nuget" {
			words = trimLast(words, "--")
		}
		return config.Spec{Kind: config.Stdio, Command: cmp.Or(knownHint(p), r.command), Args: words, Env: values}
	}
}

// trimLast removes the last word if it is the given one.
func trimLast(words []string, word string) []string {
	if n := len(words); n > 0 && words[n-1] == word {
		return words[:n-1]
	}
	return words
}

// knownHint returns the runner that a package wants instead of the usual one, if its command line
// is the same.
func knownHint(p pkg) string {
	if p.Type == "oci" && p.RuntimeHint == "podman" {
		return p.RuntimeHint
	}
	return ""
}

// unsupportedPackage says why dowel cannot run a package, or "".
func unsupportedPackage(p pkg, known bool) string {
	switch {
	case p.Transport.Type != "" && p.Transport.Type != "stdio":
		return fmt.Sprintf("the package serves %s after it was started, and dowel starts servers that use stdin and stdout", p.Transport.Type)
	case p.FileSHA256 != "" && !digestPattern().MatchString(p.FileSHA256):
		return fmt.Sprintf("its digest %q is not SHA-256 in 64 hexadecimal digits", p.FileSHA256)
	case p.Type == "mcpb" && p.FileSHA256 == "":
		return "the registry has no digest of the bundle"
	case p.Type == "mcpb":
		return ""
	case !known:
		return fmt.Sprintf("dowel runs no packages of the type %q", p.Type)
	case !identifierPatterns[p.Type]().MatchString(p.Identifier):
		return fmt.Sprintf("its identifier %q is not the name of a package", p.Identifier)
	case p.FileSHA256 != "" && p.Type != "npm":
		return fmt.Sprintf("dowel cannot check the digest of a package of the type %q", p.Type)
	}
	if version := imageVersion(p); version == "latest" {
		return "its version is not fixed (latest)"
	} else if !versionPatterns[p.Type]().MatchString(version) && !strings.HasPrefix(version, "sha256:") {
		return fmt.Sprintf("its version %q is not one version", version)
	}
	for _, kv := range p.Environment {
		if riskyVariable().MatchString(kv.Name) {
			return fmt.Sprintf("it sets the variable %s, which changes what is loaded", kv.Name)
		}
	}
	for _, a := range p.RuntimeArguments {
		if p.Type != "oci" && (a.Type != "named" || a.Name != "-y" && a.Name != "--yes") {
			return fmt.Sprintf("its argument %q for %s would change what runs", cmp.Or(a.Name, a.Value, a.ValueHint), runners[p.Type].command)
		}
	}
	return ""
}

// imageVersion returns the version of a package: of an image, the digest or the tag in its
// identifier comes first.
func imageVersion(p pkg) string {
	if p.Type != "oci" {
		return p.Version
	}
	image, digest, ok := strings.Cut(p.Identifier, "@")
	if ok {
		return digest
	}
	if _, tag, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":"); ok {
		return tag
	}
	return p.Version
}

// describeRisks returns what a container of a package may do beyond its own files.
func describeRisks(p pkg) (risks []string) {
	for _, a := range p.RuntimeArguments {
		for _, word := range []string{a.Name, a.Value} {
			if p.Type == "oci" && openingOptions().MatchString(word) {
				risks = append(risks, "the option "+word+" of docker opens this machine to the container")
			}
		}
	}
	return risks
}
