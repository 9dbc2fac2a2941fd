package bundle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/install"
)

// Manifest is the manifest.json of a bundle, of the versions 0.1 to 0.4.
type Manifest struct {
	ManifestVersion string `json:"manifest_version"`
	DXTVersion      string `json:"dxt_version"` // the name of manifest_version in 0.1
	Name            string `json:"name"`
	DisplayName     string `json:"display_name"`
	Version         string `json:"version"`
	Description     string `json:"description"`
	Author          struct {
		Name string `json:"name"`
	} `json:"author"`
	Homepage string `json:"homepage"`
	Server   struct {
		Type       string  `json:"type"`
		EntryPoint string  `json:"entry_point"`
		Config     command `json:"mcp_config"`
	} `json:"server"`
	Compatibility struct {
		Platforms []string `json:"platforms"`
	} `json:"compatibility"`
	UserConfig map[string]option `json:"user_config"`
}

// command starts the server of a bundle.
type command struct {
	Command   string             `json:"command"`
	Args      []string           `json:"args"`
	Env       map[string]string  `json:"env"`
	Platforms map[string]command `json:"platform_overrides"`
}

// option is a value that the user sets.
type option struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Required    bool            `json:"required"`
	Default     json.RawMessage `json:"default"`
	Multiple    bool            `json:"multiple"`
	Sensitive   bool            `json:"sensitive"`
	Min         *float64        `json:"min"`
	Max         *float64        `json:"max"`
}

func (m *Manifest) checkManifest() error {
	version := cmp.Or(m.ManifestVersion, m.DXTVersion)
	switch {
	case version == "":
		return fmt.Errorf("its manifest.json has no manifest_version")
	case !strings.HasPrefix(version, "0."):
		return fmt.Errorf("its manifest.json has the version %q, dowel knows 0.1 to 0.4", version)
	case m.Name == "" || m.Version == "":
		return fmt.Errorf("its manifest.json has no name or no version")
	case !slices.Contains([]string{"node", "python", "binary", "uv"}, m.Server.Type):
		return fmt.Errorf("its server has the type %q, want node, python, binary or uv", m.Server.Type)
	case m.Server.Type != "uv" && m.Server.Config.Command == "":
		return fmt.Errorf("its manifest.json has no server.mcp_config.command")
	case m.Server.Type == "uv" && !filepath.IsLocal(m.Server.EntryPoint):
		return fmt.Errorf("its entry_point is %q, want a file of the bundle", m.Server.EntryPoint)
	}
	return nil
}

// platform is the name of this system in manifests.
func platform() string {
	if runtime.GOOS == "windows" {
		return "win32"
	}
	return runtime.GOOS
}

// command returns the command for this system.
func (m *Manifest) command() command {
	c := m.Server.Config
	if c.Command == "" && m.Server.Type == "uv" {
		c = command{Command: "uv", Args: []string{"run", "--directory", "${__dirname}", m.Server.EntryPoint}}
	}
	own := m.Server.Config.Platforms[platform()]
	c.Command = cmp.Or(own.Command, c.Command)
	if own.Args != nil {
		c.Args = own.Args
	}
	if own.Env != nil {
		c.Env = own.Env
	}
	return c
}

// program returns the file of the bundle below folder that is the command itself, or "".
func (m *Manifest) program(folder string) string {
	if m.Server.Type != "binary" {
		return ""
	}
	name := strings.TrimPrefix(m.command().Command, "${__dirname}")
	name = filepath.FromSlash(strings.TrimLeft(name, `/\`))
	if strings.Contains(name, "${") || !filepath.IsLocal(name) || !strings.ContainsAny(m.command().Command, `/\`) {
		return ""
	}
	if runtime.GOOS == "windows" && filepath.Ext(name) == "" {
		name += ".exe"
	}
	return filepath.Join(folder, name)
}

// Plan plans the server of a bundle that is unpacked in folder.
func (m *Manifest) Plan(folder string) install.Plan {
	p := install.Plan{Name: m.Name, Title: m.DisplayName, Way: "mcpb", About: []string{strings.TrimSpace(m.Name + " " + m.Version)}}
	for _, line := range []string{m.Description, m.Homepage} {
		if line != "" {
			p.About = append(p.About, line)
		}
	}
	if m.Author.Name != "" {
		p.About = append(p.About, "by "+m.Author.Name+", as the bundle says")
	}
	if all := m.Compatibility.Platforms; len(all) > 0 && !slices.Contains(all, platform()) {
		p.Unsupported = "the bundle is made for " + strings.Join(all, ", ")
	}
	for _, name := range slices.Sorted(maps.Keys(m.UserConfig)) {
		p.Inputs = append(p.Inputs, m.UserConfig[name].input(name))
	}
	p.Build = func(v install.Values) config.Spec { return m.build(folder, v) }
	return p
}

// input returns the input for an option. A list of defaults is no default of the input; build adds
// it.
func (o option) input(name string) install.Input {
	in := install.Input{Name: name, Description: cmp.Or(o.Description, o.Title), Required: o.Required, Secret: o.Sensitive, Repeated: o.Multiple,
		Type: o.Type, Min: o.Min, Max: o.Max}
	if defaults := o.defaults(); len(defaults) == 1 {
		in.Default = defaults[0]
	} else if len(defaults) > 1 {
		in.Required, in.Example = false, strings.Join(defaults, " ")
	}
	return in
}

// defaults returns the values of an option without one of the user, with the user's folders in
// them.
func (o option) defaults() (all []string) {
	var one any
	if json.Unmarshal(o.Default, &one) != nil {
		return nil
	}
	list, ok := one.([]any)
	if !ok {
		list = []any{one}
	}
	for _, value := range list {
		switch value := value.(type) {
		case string:
			all = append(all, userFolders().Replace(value))
		case bool:
			all = append(all, strconv.FormatBool(value))
		case float64:
			all = append(all, strconv.FormatFloat(value, 'f', -1, 64))
		}
	}
	return all
}

// userFolders replaces the variables for folders of the user.
func userFolders() *strings.Replacer {
	home, _ := os.UserHomeDir()
	return strings.NewReplacer("${HOME}", home, "${DESKTOP}", filepath.Join(home, "Desktop"), "${DOCUMENTS}", filepath.Join(home, "Documents"),
		"${DOWNLOADS}", filepath.Join(home, "Downloads"), "${pathSeparator}", string(filepath.Separator), "${/}", string(filepath.Separator))
}

// build makes the entry. The command runs in the folder of the bundle.
func (m *Manifest) build(folder string, v install.Values) config.Spec {
	for name, o := range m.UserConfig {
		if len(v[name]) == 0 {
			for _, value := range o.defaults() {
				v[name] = append(v[name], install.Escape(value))
			}
		}
	}
	c := m.command()
	spec := config.Spec{Kind: config.Stdio, Command: m.fill(c.Command, folder, v), Dir: install.Escape(folder), Env: map[string]string{}}
	if program := m.program(folder); program != "" {
		spec.Command = install.Escape(program)
	}
	for _, arg := range c.Args {
		if name, ok := wholeOption(arg); ok {
			if _, known := m.UserConfig[name]; known {
				spec.Args = append(spec.Args, v[name]...)
				continue
			}
		}
		spec.Args = append(spec.Args, m.fill(arg, folder, v))
	}
	for name, value := range c.Env {
		if option, ok := wholeOption(value); ok && len(v[option]) == 0 {
			continue // an optional value that the user did not set
		}
		spec.Env[name] = m.fill(value, folder, v)
	}
	return spec
}

// wholeOption returns the name of the option if the whole text is ${user_config.NAME}.
func wholeOption(text string) (string, bool) {
	name, ok := strings.CutPrefix(text, "${user_config.")
	name, closed := strings.CutSuffix(name, "}")
	return name, ok && closed && !strings.Contains(name, "}")
}

// fill replaces the variables of a text. Other texts with ${ are no variables of dowel, and stay.
func (m *Manifest) fill(text, folder string, v install.Values) string {
	pairs := []string{"${__dirname}", install.Escape(folder)}
	for name := range m.UserConfig {
		pairs = append(pairs, "${user_config."+name+"}", strings.Join(v[name], ","))
	}
	home := userFolders()
	for _, variable := range []string{"${HOME}", "${DESKTOP}", "${DOCUMENTS}", "${DOWNLOADS}", "${pathSeparator}", "${/}"} {
		pairs = append(pairs, variable, install.Escape(home.Replace(variable)))
	}
	pairs = append(pairs, "${", "$${")
	return strings.NewReplacer(pairs...).Replace(text)
}
