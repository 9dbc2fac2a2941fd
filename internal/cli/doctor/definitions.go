package doctor

import (
	"fmt"
	"iter"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/definitions"
	"github.com/dowel-mcp/dowel/internal/doctor"
)

// withDefinitions appends a step to the steps of a server if its definitions have changed. The step
// reads the server's log, so it does not depend on the other steps.
func withDefinitions(steps iter.Seq[doctor.Step], d hub.Definition) iter.Seq[doctor.Step] {
	return func(yield func(doctor.Step) bool) {
		for s := range steps {
			if !yield(s) {
				return
			}
		}
		if s, changed := describeDefinitions(d); changed {
			yield(s)
		}
	}
}

// describeDefinitions returns the step about changed definitions of a server.
func describeDefinitions(d hub.Definition) (s doctor.Step, changed bool) {
	if d.Log == nil {
		return s, false
	}
	s = doctor.Step{Name: "definitions", Status: doctor.Warning}
	record, err := definitions.Read(d.Log)
	changes := len(record.Changes())
	switch {
	case err != nil:
		s.Detail, s.Advice = err.Error(), "make dowel's state folder writable"
	case record.IsVolatile():
		s.Detail = fmt.Sprintf("the server has given other definitions at each of its last %d starts, so approvals of its tools do not last", record.ChangedStarts)
		s.Advice = `if that is its nature, add "definitions": "note" to its entry, so that changed tools are not withheld; look at the changes with dowel trust --definitions ` + d.Name
	case changes > 0:
		s.Detail = fmt.Sprintf("%d differ from the accepted ones", changes)
		s.Advice = "look at the changes and accept them with dowel trust --definitions " + d.Name
	default:
		return s, false
	}
	return s, true
}
