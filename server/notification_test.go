package server

import (
	"context"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

func TestOnNotification(t *testing.T) {
	type params struct {
		N int `json:"n"`
	}
	ping := mcp.NotificationMethod[params]{Name: "notifications/com.example/ping"}
	s := New("test", "1")
	var got []int
	OnNotification(s, ping, func(_ context.Context, p params) { got = append(got, p.N) })
	for _, n := range []mcp.Notification{
		{Method: ping.Name, Params: []byte(`{"n":1}`)},
		{Method: "notifications/unknown"},
		{Method: ping.Name, Params: []byte(`{"n":"x"}`)},
		{Method: ping.Name, Params: []byte(`{"n":2}`)},
	} {
		s.NotifyMCP(t.Context(), n)
	}
	if len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Errorf("got %v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a method was taken twice")
		}
	}()
	OnNotification(s, ping, func(context.Context, params) {})
}
