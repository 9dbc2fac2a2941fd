package gateway

import "testing"

// A subscription to a task of another replica tells no state twice, and none that is older than
// another one, as the stored one is.
func TestStatesOfRemoteTaskAreInOrder(t *testing.T) {
	var order stateOrder
	for i, c := range []struct {
		state  string
		isNews bool
	}{
		{`{"status":"working","lastUpdatedAt":"2026-01-01T00:00:00.100Z"}`, true},
		{`{"status":"working","lastUpdatedAt":"2026-01-01T00:00:00.100Z"}`, false},
		{`{"status":"input_required","lastUpdatedAt":"2026-01-01T00:00:02.000Z"}`, true},
		{`{"status":"working","lastUpdatedAt":"2026-01-01T00:00:00.100Z"}`, false},
		{`{"status":"working","lastUpdatedAt":"2026-01-01T00:00:02.000Z"}`, true},
		{`{"status":"failed","lastUpdatedAt":"2026-01-01T00:00:01.000Z"}`, true},
	} {
		if got := order.isNews([]byte(c.state)); got != c.isNews {
			t.Errorf("state %d: %v, want %v", i, got, c.isNews)
		}
	}
}
