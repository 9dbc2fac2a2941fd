package secretmask_test

import (
	"testing"

	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// FuzzMayContain checks that MayContain never misses a secret that Text finds.
func FuzzMayContain(f *testing.F) {
	for _, text := range []string{
		"https://me:hush@host", "https://token@host", "://u:a/b@h", "Authorization: Bearer abcdef123", `{"Cookie":"a=b"}`, "x-my-api-key: k1", "API-KEY=abcdef",
		"Private-Token: abc1", "basic dXNlcjpwYXNz", "?key=abc", "MY_TOKEN=abc1", "--api-key abc1", `["-token", "abc1"]`, "ghp_abcdefghijklmn", "github_pat_abcdefghijklm",
		"glpat-abcdefghijklm", "sk-abcdefghijklmn", "xoxb-abcdefghijklmn", "AKIAABCDEFGHIJKLM", "eyJabcdefghijklmn", `\nauthorization: hush1`, "COOKIE: a", "coo\u212aie: abc1",
		"clientSecret=abc1", "sessionid=abc1", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if masked := secretmask.Text(text); masked != text && !secretmask.MayContain([]byte(text)) {
			t.Errorf("MayContain misses the secret in %q, which becomes %q", text, masked)
		}
	})
}

// A usual message needs no masking, so that recording it is cheap.
func TestMayContainOfUsualMessages(t *testing.T) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"everything__echo","arguments":{"message":"hello","count":3},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"a == b, well-known, back-up; e-mail me"}]}}`,
	} {
		if secretmask.MayContain([]byte(text)) {
			t.Errorf("%s takes the slow way", text)
		}
	}
	set := secretmask.NewSet("hush-hush")
	if !set.MayContain([]byte("it is hush-hush")) || set.MayContain([]byte("it is public")) {
		t.Error("known secrets are not told from other texts")
	}
}

func BenchmarkMayContain(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"everything__echo","arguments":{"message":"hello","count":3},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		secretmask.MayContain(text)
	}
}
