package interop

import (
	"os"
	"path/filepath"
	"testing"
)

// Tests of dowel as the client of the reference servers from npm.

func TestServerEverything(t *testing.T) {
	for name, server := range map[string]func(t *testing.T) string{
		"stdio": func(t *testing.T) string { return npmPath(t, "mcp-server-everything") },
		"streamableHttp": func(t *testing.T) string {
			return startService(t, everythingService(t, "streamableHttp")).urlOf("/mcp")
		},
		"sse":              func(t *testing.T) string { return startService(t, everythingService(t, "sse")).urlOf("/sse") },
		"sse without /sse": func(t *testing.T) string { return startService(t, everythingService(t, "sse")).urlOf("") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			useServerEverything(t, server(t))
		})
	}
}

func useServerEverything(t *testing.T, to string) {
	c, server := newCLI(t), []string{to}
	expectMember(t, c.runJSON(server, "tools"), "name", "echo")
	expectMember(t, c.runJSON(server, "prompts"), "name", "args-prompt")
	expectMember(t, c.runJSON(server, "resources"), "uriTemplate", "demo://resource/dynamic/text/{resourceId}")
	expectMember(t, c.runJSON(server, "discover"), "name", "mcp-servers/everything")

	// The questions that it asks its client.
	c.expectSuccess(server, words("call", "trigger-elicitation-request", "--answer", "name=Ada"), "Ada")
	c.expectSuccess(server, words("call", "trigger-sampling-request", "prompt=Name a city.", "--sample-text", "Paris"), "Paris")
	folder := t.TempDir()
	c.expectSuccess(server, words("call", "get-roots-list", "--root", folder), filepath.Base(folder))

	c.expectSuccess(server, words("call", "echo", "message=grüße & <world>"), "Echo: grüße & <world>")
	c.expectSuccess(server, words("call", "get-sum", "a=19", "b=23"), "42")
	expectMember(t, c.runJSON(server, "call", "get-structured-content", "location=Chicago"), "temperature", 36.0)
	expectMember(t, c.runJSON(server, "call", "get-tiny-image"), "mimeType", "image/png")
	expectMember(t, c.runJSON(server, "call", "get-resource-links", "count=2"), "type", "resource_link")
	c.expectSuccess(server, words("call", "trigger-long-running-operation", "duration=1", "steps=4"), "completed")
	c.expectSuccess(server, words("read", "demo://resource/dynamic/text/7"), "Resource 7")
	c.expectSuccess(server, words("prompt", "args-prompt", "city=Oslo"), "What's weather in Oslo?")
	c.expectSuccess(server, words("complete", "completable-prompt", "department=E"), "Engineering")

	c.expectFailure(server, words("call", "no_such_tool"), "no_such_tool")
	c.expectFailure(server, words("call", "get-sum", "a=nineteen", "b=23"), "a")
	c.expectFailure(server, words("read", "demo://no/such"), "demo://no/such")
	c.expectFailure(server, words("prompt", "no-such-prompt"), "no-such-prompt")
}

func TestServerFilesystem(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "note.txt")
	if err := os.WriteFile(file, []byte("line one\nline two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := []string{npmPath(t, "mcp-server-filesystem"), folder}

	expectMember(t, c.runJSON(server, "tools"), "name", "read_text_file")
	c.expectSuccess(server, words("call", "list_directory", "path="+folder), "note.txt")
	c.expectSuccess(server, words("call", "read_text_file", "path="+file), "line one")
	c.expectSuccess(server, words("call", "read_text_file", "path="+file, "head=1"), "line one")

	written := filepath.Join(folder, "new.txt")
	c.expectSuccess(server, words("call", "write_file", "path="+written, "content=a=b, {c} [d]"))
	if content, err := os.ReadFile(written); err != nil || string(content) != "a=b, {c} [d]" {
		t.Errorf("write_file wrote %q, %v", content, err)
	}
	c.expectFailure(server, words("call", "read_text_file", "path=/etc/hostname"), "denied")
}

func TestServerMemory(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := []string{"env", "MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "memory.json"), npmPath(t, "mcp-server-memory")}
	entities := `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote the first program"]}]}`

	c.expectSuccess(server, words("call", "create_entities", "--args", entities), "Ada")
	expectMember(t, c.runJSON(server, "call", "read_graph"), "entityType", "person")

	file := filepath.Join(t.TempDir(), "args.json")
	if err := os.WriteFile(file, []byte(`{"query":"Ada"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.expectSuccess(server, words("call", "search_nodes", "--args", "@"+file), "first program")
}
