package mcpwire

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

func TestMetaKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "a", "7", "a.b_c-d", "traceparent", "progressToken", "com.example/", "com.example/a", "a-b.c9/x_y", "x/1", "io.modelcontextprotocol/logLevel", "ui/resourceUri"} {
		if err := CheckMeta(mcp.Meta{key: 1}); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"-bad key!", "_fastmcp", "a_", "a b", "é", "/a", "9a/b", "a-/b", ".a/b", "a./b", "a..b/c", "a_b/c", "a/b/c", "a/-b"} {
		if err := CheckMeta(mcp.Meta{"ok": 1, key: 1}); err == nil || !strings.Contains(err.Error(), "is not a key of _meta") {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestExtensionIdentifiers(t *testing.T) {
	t.Parallel()
	for id, valid := range map[string]bool{
		"com.example/jobs": true, "io.modelcontextprotocol/ui": true, "acme/ask": true,
		"": false, "jobs": false, "com.example/": false, "no prefix!": false, "com.example/a b": false, "9/x": false,
	} {
		if err := CheckExtensions([]mcp.Extension{{ID: "com.example/fine"}, {ID: id}}); (err == nil) != valid {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestURIs(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"x://a", "x:///a%20b", "file:///home/ada", "urn:isbn:0451450523", "mailto:a@b.test", "https://[::1]:80/a?b=c#d", "git+ssh://h/p", "x://a/(b),c;d=e!", "kv://a%20b", "x://%22q%22", "x:a"} {
		if err := CheckURI(uri); err != nil {
			t.Errorf("%q: %v", uri, err)
		}
	}
	for _, uri := range []string{"", "name", "x", "/a/b", "x:", "1x://a", "x_y://a", "x:///a b", "x://a/<>", "x://a/%2", "x://a/\u00e9", `x://a/"b"`, "x://a/{b}", "x://a/b\\c", "x://a/|", "://a", "x://a\n", "x://a/[b]", "x://a#b#c", "x://a/%zz"} {
		if err := CheckURI(uri); err == nil {
			t.Errorf("%q is taken for a URI", uri)
		}
	}
}

func TestRoots(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"file:///", "file:///home/ada/my%20project", "file:///C:/work", "file://server/share/a", "file:///a/..b/c.."} {
		if err := CheckRoot(uri); err != nil {
			t.Errorf("%q: %v", uri, err)
		}
	}
	for _, uri := range []string{"", "/home/ada", "https://a.test/x", "file:a", "file:../a", "file://", "file:///a/../../etc", "file:///a/%2e%2e/etc", "file:///..",
		`file:///C:/a%5C..%5Cb`, "file:///a%00b", "file:///a b", "file:///a?b", "file:///a#b"} {
		if err := CheckRoot(uri); err == nil {
			t.Errorf("%q is taken for a root", uri)
		}
	}
}

func TestMIMETypes(t *testing.T) {
	t.Parallel()
	for text, valid := range map[string]bool{
		"image/png": true, "text/plain; charset=utf-8": true, "application/vnd.acme+json": true,
		"": false, "png": false, "image/": false, "image/p ng": false, "/png": false,
	} {
		if err := CheckMIMEType(text); (err == nil) != valid {
			t.Errorf("%q: %v", text, err)
		}
	}
}
