package urlmask_test

import (
	"errors"
	"testing"

	"github.com/dowel-mcp/dowel/internal/urlmask"
)

func TestKey(t *testing.T) {
	for _, tt := range []struct{ key, text, want string }{
		{"sk-verysecretbad", "Incorrect API key provided: sk-verysecretbad.", "Incorrect API key provided: ****."},
		{"sk-0123456789abcdefWXYZ", "no key sk-0123456789abcdefWXYZ, as ...WXYZ", "no key ****WXYZ, as ...WXYZ"},
		{"a/b+c=d/e+f", "at ?key=a%2Fb%2Bc%3Dd%2Fe%2Bf and a/b+c=d/e+f", "at ?key=**** and ****"},
		{"ollama", "http://ollama:11434", "http://ollama:11434"},
		{"", "nothing", "nothing"},
	} {
		cause := errors.New(tt.text)
		if err := urlmask.Error(cause, "http://host/v1", tt.key); err.Error() != tt.want || !errors.Is(err, cause) {
			t.Errorf("%s: got %v, want %s", tt.key, err, tt.want)
		}
	}
	const raw = "https://host/v1?token=hush-hush"
	if got, want := urlmask.Text("hush-hush and sk-verysecret at "+raw, raw, "sk-verysecret"), "**** and **** at https://host/v1?token=****"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
