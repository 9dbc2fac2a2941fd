package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/servers/data"
)

// The durations say what is wrong with them.
func TestDurations(t *testing.T) {
	var o data.Options
	for _, option := range options(&o) {
		if option.Name != "timeout" && option.Name != "poll" {
			continue
		}
		for value, want := range map[string]string{"often": "want one such as 30s", "0": "too short", "-5s": "too short"} {
			if err := option.Set(value); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s=%s: %v, want %s", option.Name, value, err, want)
			}
		}
		if err := option.Set("90s"); err != nil {
			t.Error(err)
		}
	}
	if o.Timeout != 90*time.Second || o.Poll != 90*time.Second {
		t.Errorf("%+v", o)
	}
}
