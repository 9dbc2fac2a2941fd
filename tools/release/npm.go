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
// dowel.
const npmScope = "@dowel-mcp"

//go:embed npm/launcher.js
var npmLauncher []byte

//go:embed npm/README.md
var npmReadme []byte

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

func (t target) npmName() string {
	return npmScope + "/" + npmOS[t.goos] + "-" + npmCPU[t.goarch]
}

// writeNPM packs the package dowel and one package for each target into out/npm. It uses scratch
// for the unpacked packages.
func (r *release) writeNPM(ctx context.Context, targets []target, scratch string) error {
	main := npmManifest{
		Name: "dowel", Version: r.version, Description: "One Model Context Protocol endpoint for all your servers: hub, gateway and agent",
		License: "MIT", Repository: "github:dowel-mcp/dowel",
		Bin: map[string]string{"dowel": "bin/dowel.js"}, Files: []string{"bin"},
		Engines: map[string]string{"node": ">=18"}, OptionalDependencies: map[string]string{},
	}
	for _, t := range targets {
		main.OptionalDependencies[t.npmName()] = r.version
		binary, err := os.ReadFile(t.binary)
		if err != nil {
			return err
		}
		manifest := npmManifest{
			Name: t.npmName(), Version: r.version, Description: fmt.Sprintf("The dowel binary for %s", t),
			License: "MIT", Repository: main.Repository, Files: []string{"bin"},
			OS: []string{npmOS[t.goos]}, CPU: []string{npmCPU[t.goarch]}, PreferUnplugged: true,
		}
		if err := r.packNPM(ctx, filepath.Join(scratch, filepath.Base(t.npmName())), manifest, "bin/"+t.binaryName(), binary); err != nil {
			return err
		}
	}
	return r.packNPM(ctx, filepath.Join(scratch, "dowel"), main, main.Bin["dowel"], npmLauncher)
}

// packNPM writes one package to folder and packs it into out/npm.
func (r *release) packNPM(ctx context.Context, folder string, manifest npmManifest, name string, content []byte) error {
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
	program := filepath.Join(folder, filepath.FromSlash(name))
	err = errors.Join(
		os.MkdirAll(out, 0o755),
		os.MkdirAll(filepath.Dir(program), 0o755),
		os.WriteFile(filepath.Join(folder, "package.json"), encoded, 0o644),
		os.WriteFile(filepath.Join(folder, "README.md"), npmReadme, 0o644),
		os.WriteFile(filepath.Join(folder, "LICENSE"), license, 0o644),
		os.WriteFile(program, content, 0o755),
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
