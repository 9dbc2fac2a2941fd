package control

import (
	"context"
	"net/http"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/doctor"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// DoctorStep is a step of an examination in its JSON form.
type DoctorStep struct {
	Step   string        `json:"step"`
	Status doctor.Status `json:"status"`
	Detail string        `json:"detail,omitzero"`
	Advice string        `json:"advice,omitzero"`
	Error  string        `json:"error,omitzero"`
	Stderr []string      `json:"stderr,omitempty"`
	MS     float64       `json:"ms"`
}

// streamDoctor examines a server, with a process or connection of its own, and answers with the
// steps as they happen, one JSON object a line. A server that must not start has one skipped step.
func streamDoctor(w http.ResponseWriter, r *http.Request, h *hub.Hub, life context.Context) {
	u := h.Upstream(r.PathValue("name"))
	if u == nil {
		writeOutcome(w, ErrNoServer)
		return
	}
	ctx, end := requestContext(r, life)
	defer end()
	lines := newLineWriter(w)
	d := u.Definition()
	if d.Hold.Status != 0 {
		_ = lines.writeLine(DoctorStep{Step: d.Hold.Status.String(), Status: doctor.Skipped, Detail: d.Hold.Reason})
		return
	}
	_ = lines.flush()
	for s := range doctor.Examine(ctx, doctor.Server{Name: d.Name, Target: examinedTarget(d.Target), Options: d.Options, Mask: d.Mask}) {
		step := DoctorStep{Step: s.Name, Status: s.Status, Detail: s.Detail, Advice: s.Advice, MS: float64(s.Took.Microseconds()) / 1000}
		if s.Err != nil {
			step.Error = s.Err.Error()
		}
		if s.Diagnosis != nil {
			step.Stderr = s.Diagnosis.Stderr
		}
		if lines.writeLine(step) != nil {
			return
		}
	}
}

// examinedTarget returns the target that is dialed for an examination. Over HTTP the examination
// may have a session beside the session of all replicas; a process must not run twice.
func examinedTarget(target any) any {
	inner := sharedserver.Unwrap(target)
	if _, ok := inner.(stdio.Command); ok {
		return target
	}
	return inner
}
