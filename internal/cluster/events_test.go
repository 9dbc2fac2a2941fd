package cluster_test

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// While the servers of a cluster store an event whose acknowledgement was late, they refuse the
// same event. It is sent again until its number is known.
func TestEventThatIsBeingStored(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, nil)
	conn, js := natstest.Connect(t, s)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "DOWEL_dowel_events", Subjects: []string{"elsewhere"}})
	if err != nil { // the test answers in the place of the stream
		t.Fatal(err)
	}
	messages := make(chan string, 10)
	_, err = conn.Subscribe("dowel.dowel.event.>", func(m *nats.Msg) {
		messages <- m.Header.Get(jetstream.MsgIDHeader)
		answer := `{"stream":"DOWEL_dowel_events","seq":7,"duplicate":true}`
		if len(messages) < 3 {
			answer = `{"stream":"DOWEL_dowel_events","seq":0,"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}`
		}
		_ = m.Respond([]byte(answer))
	})
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	id, err := open(t, s.ClientURL()).Append(t.Context(), "S", []byte("x"))
	if err != nil || !strings.HasSuffix(id, "_7") {
		t.Errorf("%q, %v", id, err)
	}
	if one := <-messages; one == "" || len(messages) != 2 || <-messages != one || <-messages != one {
		t.Errorf("the tries are not the same message %q", one)
	}
}
