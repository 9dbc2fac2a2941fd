package stdio

import "testing"

// The lines are of mcp-remote 0.15.1, and those after a login end the wait.
func TestFindLogin(t *testing.T) {
	t.Parallel()
	const browser = "[7] \nPlease authorize this client by visiting:\nhttps://a.example/authorize?x=1\n\n[7] Browser opened automatically.\n[7] Authentication required. Waiting for authorization...\n"
	const device = "[7] \n[7] To authorize this client, visit:\n[7]   https://a.example/device?code=1\n[7] \n[7] Waiting for approval...\n"
	for prompt, address := range map[string]string{browser: "https://a.example/authorize?x=1", device: "https://a.example/device?code=1"} {
		if got := findLogin(prompt); got != address {
			t.Errorf("%q: %q, want %q", prompt, got, address)
		}
		for _, line := range []string{
			"Auth code received, resolving promise", "Completing authorization...", "Connected to remote server using StreamableHTTPClientTransport",
			"Signed in without a browser - reconnecting with the tokens it produced", "Signed in without a browser; retrying with the tokens it produced",
			"Authentication was completed by another instance - reconnecting with the tokens it wrote", "Re-authorized with the remote server",
			"Authorization error: invalid_grant",
		} {
			if got := findLogin(prompt + "[7] " + line + "\n"); got != "" {
				t.Errorf("after %q, it waits for a login at %s", line, got)
			}
			if got := findLogin(prompt + "[7] " + line + "\n" + prompt); got != address {
				t.Errorf("a second prompt after %q: %q", line, got)
			}
		}
	}
}
