package interop

import (
	"os"
	"path/filepath"
	"testing"
)

// dowel as the client of the reference servers from npm.

func TestServerEverything(t *testing.T) {
	for name, server := range map[string]func(t *testing.T) string{
		"stdio":            func(t *testing.T) string { return npm(t, "mcp-server-everything") },
		"streamableHttp":   func(t *testing.T) string { return serve(t, everythingService(t, "streamableHttp")).at("/mcp") },
		"sse":              func(t *testing.T) string { return serve(t, everythingService(t, "sse")).at("/sse") },
		"sse without /sse": func(t *testing.T) string { return serve(t, everythingService(t, "sse")).at("") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			useServerEverything(t, server(t))
		})
	}
}

func useServerEverything(t *testing.T, to string) {
	c, server := newCLI(t), []string{to}
	has(t, c.json(server, "tools"), "name", "echo")
	has(t, c.json(server, "prompts"), "name", "args-prompt")
	has(t, c.json(server, "resources"), "uriTemplate", "demo://resource/dynamic/text/{resourceId}")
	has(t, c.json(server, "discover"), "name", "mcp-servers/everything")

	// What it asks of its client.
	c.ok(server, words("call", "trigger-elicitation-request", "--answer", "name=Ada"), "Ada")
	c.ok(server, words("call", "trigger-sampling-request", "prompt=Name a city.", "--sample-text", "Paris"), "Paris")
	folder := t.TempDir()
	c.ok(server, words("call", "get-roots-list", "--root", folder), filepath.Base(folder))

	c.ok(server, words("call", "echo", "message=grüße & <world>"), "Echo: grüße & <world>")
	c.ok(server, words("call", "get-sum", "a=19", "b=23"), "42")
	has(t, c.json(server, "call", "get-structured-content", "location=Chicago"), "temperature", 36.0)
	has(t, c.json(server, "call", "get-tiny-image"), "mimeType", "image/png")
	has(t, c.json(server, "call", "get-resource-links", "count=2"), "type", "resource_link")
	c.ok(server, words("call", "trigger-long-running-operation", "duration=1", "steps=4"), "completed")
	c.ok(server, words("read", "demo://resource/dynamic/text/7"), "Resource 7")
	c.ok(server, words("prompt", "args-prompt", "city=Oslo"), "What's weather in Oslo?")
	c.ok(server, words("complete", "completable-prompt", "department=E"), "Engineering")

	c.fails(server, words("call", "no_such_tool"), "no_such_tool")
	c.fails(server, words("call", "get-sum", "a=nineteen", "b=23"), "a")
	c.fails(server, words("read", "demo://no/such"), "demo://no/such")
	c.fails(server, words("prompt", "no-such-prompt"), "no-such-prompt")
}

func TestServerFilesystem(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "note.txt")
	if err := os.WriteFile(file, []byte("line one\nline two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := []string{npm(t, "mcp-server-filesystem"), folder}

	has(t, c.json(server, "tools"), "name", "read_text_file")
	c.ok(server, words("call", "list_directory", "path="+folder), "note.txt")
	c.ok(server, words("call", "read_text_file", "path="+file), "line one")
	c.ok(server, words("call", "read_text_file", "path="+file, "head=1"), "line one")

	written := filepath.Join(folder, "new.txt")
	c.ok(server, words("call", "write_file", "path="+written, "content=a=b, {c} [d]"))
	if content, err := os.ReadFile(written); err != nil || string(content) != "a=b, {c} [d]" {
		t.Errorf("write_file wrote %q, %v", content, err)
	}
	c.fails(server, words("call", "read_text_file", "path=/etc/hostname"), "denied")
}

func TestServerMemory(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	server := []string{"env", "MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "memory.json"), npm(t, "mcp-server-memory")}
	entities := `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote the first program"]}]}`

	c.ok(server, words("call", "create_entities", "--args", entities), "Ada")
	has(t, c.json(server, "call", "read_graph"), "entityType", "person")

	file := filepath.Join(t.TempDir(), "args.json")
	if err := os.WriteFile(file, []byte(`{"query":"Ada"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ok(server, words("call", "search_nodes", "--args", "@"+file), "first program")
}
