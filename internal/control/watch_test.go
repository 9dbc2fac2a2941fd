package control_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/dowel-mcp/dowel/internal/control"
)

// Arguments of prompts and templates are completed by the server.
func TestCompletion(t *testing.T) {
	t.Parallel()
	_, api := newCalls(t)
	type answer struct {
		Values []string
		Error  string
	}
	for body, want := range map[string][]string{
		`{"server":"everything","kind":"prompt","name":"test_prompt_with_arguments","argument":"arg1","value":"par"}`: {"paris", "park", "party"},
		`{"server":"everything","kind":"prompt","name":"test_prompt_with_arguments","argument":"arg1","value":"x"}`:   {},
		`{"server":"everything","kind":"template","name":"test://template/{id}/data","argument":"id","value":"x"}`:    {},
	} {
		if got := askAPI[answer](t, api, "POST", "/v1/complete", body); got.Error != "" || !slices.Equal(got.Values, want) {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := askAPI[answer](t, api, "POST", "/v1/complete", `{"server":"everything","kind":"prompt","name":"none"}`); got.Error == "" {
		t.Errorf("%+v", got)
	}
}

// A subscription is requested, acknowledged, and has each change. One that the server does not
// offer is refused.
func TestWatch(t *testing.T) {
	t.Parallel()
	calls, _ := newCalls(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watched := control.ItemName{Server: "everything", Kind: "resource", Name: "test://watched-resource"}
	var states []control.WatchState
	enough := errors.New("enough")
	err := calls.Watch(ctx, watched, func(e control.WatchEvent) error {
		switch e.Kind {
		case "state":
			states = append(states, e.State)
			if e.State == control.WatchAcknowledged {
				_, err := calls.Start(tool("test_trigger_resource_update", ""))
				return err
			}
		case "change":
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || !slices.Equal(states, []control.WatchState{control.WatchRequested, control.WatchAcknowledged}) {
		t.Errorf("%v, %v", states, err)
	}
	if err := calls.Watch(ctx, control.ItemName{Server: "everything", Kind: "resource", Name: "test://none"}, nil); err == nil {
		t.Error("a resource that does not exist is watched")
	}
}
