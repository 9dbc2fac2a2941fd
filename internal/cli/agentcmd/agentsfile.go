package agentcmd

import (
	"github.com/dowel-mcp/dowel/internal/agentsfile"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/term"
)

// findInstructionFiles returns the files with instructions that the model gets, and warns of the
// others.
func (e *environment) findInstructionFiles(f *factory.Factory, opts *Flags) []agentsfile.File {
	if opts.NoInstructions {
		return nil
	}
	places, err := opts.Places.ConfigOptions()
	if err != nil {
		return nil // readEnvironment has reported it
	}
	var used []agentsfile.File
	for _, file := range agentsfile.Find(places.Dir(), places.Project, e.state) {
		path := term.Line(file.Path)
		switch {
		case file.Err != nil:
			f.Warn("%s is not given to the model: %v", path, file.Err)
		case file.Changed:
			f.Warn("%s has changed since you agreed to it, and is not given to the model: dowel trust --instructions shows it and asks", path)
		case !file.Agreed:
			f.Warn("%s is not given to the model: dowel trust --instructions shows it and asks", path)
		default:
			used = append(used, file)
		}
	}
	return used
}

// InstructionPaths returns the paths of the files with instructions that the model gets.
func (r *Runtime) InstructionPaths() (paths []string) {
	for _, file := range r.instructionFiles {
		paths = append(paths, file.Path)
	}
	return paths
}
