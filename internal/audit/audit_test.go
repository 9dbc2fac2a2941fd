package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// The options decide about arguments, and all texts are masked.
func TestLogMasks(t *testing.T) {
	var out bytes.Buffer
	hide := func(text string) string { return strings.ReplaceAll(text, "s3cret", "****") }
	for _, arguments := range []bool{false, true} {
		out.Reset()
		log := NewLog(&out, Options{Arguments: arguments, Mask: hide})
		log.Write(Record{
			Method: "tools/call", Server: "shell", Name: "run", Outcome: "refused", By: "user", Reason: "it shows s3cret",
			Arguments: json.RawMessage(`{"command":"echo s3cret"}`),
		})
		var got Record
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		want := ""
		if arguments {
			want = `{"command":"echo ****"}`
		}
		if got.By != "user" || got.Reason != "it shows ****" || string(got.Arguments) != want {
			t.Errorf("%+v", got)
		}
	}
}
