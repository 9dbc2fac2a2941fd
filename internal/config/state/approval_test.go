package state_test

import (
	"reflect"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config/state"
)

func TestApprovals(t *testing.T) {
	s, w := fresh(t)
	if all := s.Approvals(); all != nil {
		t.Errorf("%v", all)
	}
	must(t, s.SetEnabled("off", false)) // says nothing of tools
	must(t, s.Allow("shell", "run"))
	must(t, s.Allow("files", "write", "edit", "write"))
	other, _ := open(t, s.Path())
	want := []state.Approval{{Server: "files", Tools: []string{"edit", "write"}}, {Server: "shell", Tools: []string{"run"}}}
	if got := other.Approvals(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	got := other.Approvals()
	got[0].Tools[0] = "delete" // a copy
	if got := other.AlwaysAllow("files"); !reflect.DeepEqual(got, []string{"edit", "write"}) {
		t.Errorf("%v", got)
	}
	must(t, other.Disallow("files", "edit", "write"))
	must(t, s.Forget("shell"))
	if all := s.Approvals(); all != nil {
		t.Errorf("%v are left", all)
	}
	w.expect(t)
}
