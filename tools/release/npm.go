package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The names that npm, process.platform and process.arch use for values of GOOS and GOARCH.
var (
	npmOS  = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32"}
	npmCPU = map[string]string{"amd64": "x64", "arm64": "arm64"}
)

// npmScope is the scope of the packages with binaries. npm installs only the package for the user's
// platform, because each one names its os and cpu and is an optional dependency of the package
// that users install.
const npmScope = "@dowel-mcp/"

// An npmPackage is a package that users install. Its programs are started by lib/launch.js, which
// finds their binaries in the package prefix+PLATFORM.
type npmPackage struct {
	name, prefix string
	description  string
	programs     []string
	readme       []byte
}

//go:embed npm/launch.js
var npmLauncher []byte

//go:embed npm/README.md
var npmReadme []byte

//go:embed npm/README-servers.md
var npmServersReadme []byte

var (
	dowelPackage = npmPackage{
		name: "dowel", prefix: npmScope, programs: []string{"dowel"}, readme: npmReadme,
		description: "One Model Context Protocol endpoint for all your servers: hub, gateway and agent",
	}
	serversPackage = npmPackage{
		name: npmScope + "servers", prefix: npmScope + "servers-", programs: serverPrograms, readme: npmServersReadme,
		description: "Model Context Protocol servers for tables, PostgreSQL, GitHub and the screen",
	}
)

// npmManifest is the part of package.json that a release uses.
type npmManifest struct {
	Name                 string            `json:"name"`
	Version              string            `json:"version"`
	Description          string            `json:"description"`
	License              string            `json:"license"`
	Repository           string            `json:"repository"`
	Bin                  map[string]string `json:"bin,omitempty"`
	Files                []string          `json:"files"`
	OS                   []string          `json:"os,omitempty"`
	CPU                  []string          `json:"cpu,omitempty"`
	Engines              map[string]string `json:"engines,omitempty"`
	OptionalDependencies map[string]string `json:"optionalDependencies,omitempty"`
	PreferUnplugged      bool              `json:"preferUnplugged,omitempty"` // Yarn runs no binaries from its zip files
}

// platformName returns the name of the package with the binaries for a platform.
func (p npmPackage) platformName(t target) string {
	return p.prefix + npmOS[t.goos] + "-" + npmCPU[t.goarch]
}

// writeNPM packs the packages that users install, and the packages with their binaries, into
// out/npm. It uses scratch for the unpacked packages.
func (r *release) writeNPM(ctx context.Context, targets []target, scratch string) error {
	var dowel, servers []npmBinaries
	for _, t := range targets {
		dowel = append(dowel, npmBinaries{t, []archiveFile{{name: t.fileName("dowel"), path: t.binary}}})
		if len(t.servers) > 0 {
			servers = append(servers, npmBinaries{t, t.servers})
		}
	}
	if err := r.writePackage(ctx, dowelPackage, dowel, filepath.Join(scratch, "dowel")); err != nil || len(servers) == 0 {
		return err
	}
	return r.writePackage(ctx, serversPackage, servers, filepath.Join(scratch, "servers"))
}

// npmBinaries are the files of one platform.
type npmBinaries struct {
	target
	files []archiveFile
}

// writePackage packs p and its packages with binaries.
func (r *release) writePackage(ctx context.Context, p npmPackage, binaries []npmBinaries, scratch string) error {
	main := npmManifest{
		Name: p.name, Version: r.version, Description: p.description,
		License: "MIT", Repository: "github:dowel-mcp/dowel",
		Bin: map[string]string{}, Files: []string{"bin", "lib"},
		Engines: map[string]string{"node": ">=18"}, OptionalDependencies: map[string]string{},
	}
	files := map[string][]byte{"lib/launch.js": npmLauncher}
	for _, program := range p.programs {
		main.Bin[program] = "bin/" + program + ".js"
		files[main.Bin[program]] = fmt.Appendf(nil, "#!/usr/bin/env node\nrequire(\"../lib/launch.js\").launch(%q, %q);\n", program, p.prefix)
	}
	for _, b := range binaries {
		name := p.platformName(b.target)
		main.OptionalDependencies[name] = r.version
		content := map[string][]byte{}
		for _, file := range b.files {
			binary, err := os.ReadFile(file.path)
			if err != nil {
				return err
			}
			content["bin/"+file.name] = binary
		}
		manifest := npmManifest{
			Name: name, Version: r.version, Description: fmt.Sprintf("The binaries of %s for %s", p.name, b.target),
			License: "MIT", Repository: main.Repository, Files: []string{"bin"},
			OS: []string{npmOS[b.goos]}, CPU: []string{npmCPU[b.goarch]}, PreferUnplugged: true,
		}
		if err := r.packNPM(ctx, filepath.Join(scratch, b.goos+"-"+b.goarch), manifest, p.readme, content); err != nil {
			return err
		}
	}
	return r.packNPM(ctx, filepath.Join(scratch, "main"), main, p.readme, files)
}

// packNPM writes one package, with the given executable files, to folder and packs it into out/npm.
func (r *release) packNPM(ctx context.Context, folder string, manifest npmManifest, readme []byte, files map[string][]byte) error {
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	encoded, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	out, err := filepath.Abs(filepath.Join(r.out, "npm"))
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o755)); err != nil {
			return err
		}
	}
	err = errors.Join(
		os.MkdirAll(out, 0o755),
		os.WriteFile(filepath.Join(folder, "package.json"), encoded, 0o644),
		os.WriteFile(filepath.Join(folder, "README.md"), readme, 0o644),
		os.WriteFile(filepath.Join(folder, "LICENSE"), license, 0o644),
	)
	if err != nil {
		return err
	}
	pack := exec.CommandContext(ctx, "npm", "pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", out)
	pack.Dir = folder
	if printed, err := pack.CombinedOutput(); err != nil {
		return fmt.Errorf("npm pack of %s: %w\n%s", manifest.Name, err, printed)
	}
	return nil
}
