// Package config reads the configuration files in which people list their MCP servers: dowel's own
// files and the files of other tools. It turns their entries into server definitions that remember
// the file and position of each value. It only reads files: it never changes them and starts
// nothing.
//
//	set := config.Load(config.Options{Project: folder})
//	for _, s := range set.Servers {
//		d, problems := s.Resolve(set.Variables)
//		…
//	}
//
// # The own format
//
// dowel.json lies in the project's folder, or in dowel's folder inside the user's configuration
// folder ([Options.Dir]). It is JSON with comments and trailing commas. dowel.jsonc, dowel.yaml,
// dowel.yml and dowel.toml hold the same keys in other formats. Servers are listed under
// mcpServers, as in most tools:
//
//	{
//	  "mcpServers": {
//	    "github": {
//	      "command": "npx", "args": ["-y", "@acme/github"],       // or "url": "https://…", with "headers"
//	      "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}, "envFile": ".env", "cwd": "tools",
//	      "disabled": false, "required": false,
//	      "startTimeout": "60s", "idleTimeout": "5m", "timeout": "1h", // durations are strings
//	      "tools": {"only": ["a"], "hide": ["b"], "rename": {"a": "c"}, "describe": {"a": "…"}},
//	      "alwaysAllow": ["a"],
//	      "trustAnnotations": true,
//	      "sharing": "shared",                                    // or client, session, cluster
//	      "definitions": "note",                                  // or hold
//	      "lazy": true, "idleStop": "10m", "watchPaths": ["dist/**"], "serialize": false,
//	      "keepDetached": false,                                  // true keeps daemons of the server
//	      "revision": "auto"                                      // or legacy, modern, 2025-06-18 …
//	    }
//	  },
//	  "definitions": "note",                                      // of the servers that do not say it
//	  "inputs": [{"id": "token", "type": "promptString", "password": true}],
//	  "gateway": {
//	    "address": "127.0.0.1:7800", "token": "${DOWEL_TOKEN}", "hosts": [], "origins": [],
//	    "auth": {"url": "https://mcp.example.com", "issuers": ["https://login.example.com"], "audiences": [], "scopes": [],
//	      "servers": {"github": ["github"]}, "dpop": "offered", "requireType": false, // instead of the token
//	      "clientId": "…", "clientSecret": "${SECRET}"},
//	    "toolSearch": false, "pinned": ["github.create_issue"], "clients": {"cursor": {"toolSearch": true, "pinned": []}},
//	    "audit": "~/audit.jsonl", "auditArguments": false, "rateLimit": "100/m",
//	    "limits": {"bytes": "256MiB", "clientBytes": "64MiB", "streams": 10000, "clientStreams": 1000, "sessions": 10000,
//	      "clientSessions": 1000, "questions": 1000, "clientQuestions": 64},
//	    "tasks": {"after": "30s"}                                 // longer calls become tasks
//	  },
//	  "models": {
//	    "local": {"provider": "openai", "model": "qwen3", "url": "http://localhost:11434/v1", "window": 32768, "tools": "prompt"},
//	    "claude": {"provider": "anthropic", "model": "claude-sonnet-4-5", "key": "${ANTHROPIC_API_KEY}", "maxTokens": 8000}
//	  },
//	  "model": "claude"
//	}
//
// Every file may use the field and type names of all tools. Two things depend on the tool to which
// a file belongs: the unit of a timeout that is a number, and the kind of server behind a url
// without a type. In Gemini's files such a url means HTTP+SSE, elsewhere it means [Auto].
//
// # Precedence
//
// If several entries have the same name, one of them counts and the others are in [Set.Shadowed].
// The project's entries win over the user's. Within a folder, dowel.json wins over dowel.jsonc,
// dowel.yaml, dowel.yml and dowel.toml, in this order, and all of them win over the project's
// .mcp.json.
//
// Each key of the gateway is taken from the first file that has it, in the same order. A project
// may set only toolSearch, pinned and clients. Models can be defined only in the user's files,
// since they decide where API keys are sent. The key model, which names the default model, is taken
// from the first file that names an existing one.
//
// The key definitions at the top level counts in the user's files only ([Set.HoldsChanges]).
//
// [Discover] reads the files of other tools. Their entries have no effect until they are copied.
//
// # Variables
//
// All strings about starting and reaching a server or model may hold variables, in the forms that
// the tools use:
//
//	${NAME}  ${env:NAME}  ${env://NAME}   an environment variable
//	${NAME:-default}  and so on           the same, with a default where it is not set or empty; the default may hold variables
//	${input:ID}                           the answer to one of the file's inputs, or its default
//	${file:PATH}                          the content of a file, without the line break at its end
//	${userHome}  ${workspaceFolder}  ${workspaceFolderBasename}  ${pathSeparator}  ${/}
//	$${                                   ${ itself
//
// $NAME is a variable only in Gemini's files, and %NAME% only there on Windows. A variable without
// a value is never passed on as written and never left out. It becomes a [Problem] with the
// variable's name and position, and [Server.Resolve] returns no definition: the server needs
// configuration. A relative cwd, envFile or watchPath starts at the project's folder, or at the
// folder of a user's file.
//
// # Problems
//
// An invalid entry does not affect other entries. It stays in the list with its problems; see
// [Server.Valid]. A file that cannot be parsed at all has [File.Broken] set.
package config
