package main

import (
	"debug/buildinfo"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// dowelModule is the path of the main module.
const dowelModule = "github.com/dowel-mcp/dowel"

// writeSBOM writes the CycloneDX bill of materials of one binary to the file name. It lists the
// modules that the linker recorded in the binary, not everything in go.mod.
func (r *release) writeSBOM(program, binary, name string) (err error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.time.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: program, Type: cyclonedx.ComponentTypeApplication, Name: program, Version: r.version,
			PackageURL: "pkg:golang/" + info.Main.Path + "@" + r.version,
			Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "MIT"}}},
		},
	}
	toolchain := strings.TrimPrefix(info.GoVersion, "go")
	components := []cyclonedx.Component{{
		BOMRef: "std", Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: toolchain, PackageURL: "pkg:golang/std@" + toolchain,
	}}
	refs := []string{"std"}
	for _, module := range info.Deps {
		switch {
		case module.Path == dowelModule:
			module.Version = r.version // the servers use the dowel of their checkout
		case module.Replace != nil:
			module = module.Replace
		}
		url := "pkg:golang/" + module.Path + "@" + module.Version
		components = append(components, cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, PackageURL: url})
		refs = append(refs, url)
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: program, Dependencies: &refs}}
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}
