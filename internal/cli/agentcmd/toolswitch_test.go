package agentcmd

import "testing"

// A server that is switched off keeps its single tools off, also one whose name begins another's.
func TestToolSwitch(t *testing.T) {
	s := newToolSwitch()
	s.switchTools("kv", false)
	if server := s.switchTools("kv.get", true); server != "kv" {
		t.Errorf("kv.get was switched on: %q", server)
	}
	if server := s.switchTools("kv2.get", true); server != "" {
		t.Errorf("kv2 was taken for %s", server)
	}
	s.switchTools("kv", true)
	s.switchTools("kv.get", false)
	if server := s.switchTools("kv.get", true); server != "" || len(s.off) > 0 {
		t.Errorf("%q, %v", server, s.off)
	}
}
