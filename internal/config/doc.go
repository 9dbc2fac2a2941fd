// Package config reads the files in which people list their MCP servers: dowel's own, and those of the tools that they have. It
// makes server definitions of them that remember where each value came from. It reads only, and starts nothing.
//
//	set := config.Load(config.Options{Project: folder})
//	for _, s := range set.Servers {
//		d, problems := s.Resolve(set.Variables)
//		…
//	}
//
// # The own format
//
// dowel.json, in the project's folder and in dowel's folder within the user's configuration folder ([Options.Dir]), is JSON with
// comments and trailing commas; dowel.jsonc, dowel.yaml, dowel.yml and dowel.toml say the same in other words. Servers stand under
// mcpServers, as everywhere:
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
//	      "sharing": "shared",                                    // or client, session
//	      "lazy": true, "idleStop": "10m", "watchPaths": ["dist/**"], "serialize": false,
//	      "revision": "auto"                                      // or legacy, modern, 2025-06-18 …
//	    }
//	  },
//	  "inputs": [{"id": "token", "type": "promptString", "password": true}],
//	  "gateway": {
//	    "address": "127.0.0.1:7800", "token": "${DOWEL_TOKEN}", "hosts": [], "origins": [],
//	    "toolSearch": false, "pinned": ["github.create_issue"], "clients": {"cursor": {"toolSearch": true, "pinned": []}},
//	    "audit": "~/audit.jsonl", "auditArguments": false, "rateLimit": "100/m"
//	  },
//	  "models": {
//	    "local": {"provider": "openai", "model": "qwen3", "url": "http://localhost:11434/v1", "window": 32768, "tools": "prompt"},
//	    "claude": {"provider": "anthropic", "model": "claude-sonnet-4-5", "key": "${ANTHROPIC_API_KEY}", "maxTokens": 8000}
//	  },
//	  "model": "claude"
//	}
//
// All field and type names that the tools use are understood in every file. What differs between tools is decided by the file: the
// unit of a timeout that is a number, and that the url of a Gemini file is one of HTTP+SSE. A url without a type is [Auto].
//
// # Precedence
//
// Of entries with the same name one counts. The project's win over the user's; in one folder, dowel.json wins over dowel.jsonc,
// dowel.yaml, dowel.yml, dowel.toml, and these over the project's .mcp.json. The others are in [Set.Shadowed]. Of the gateway's
// keys each is taken from the first file that has it, in the same order; a project may only say toolSearch, pinned and clients.
// Models are the user's alone, since they say where keys go; which of them is meant, the key model, is taken from the first file
// that names one that there is.
// Files of other tools are read by [Discover], and count for nothing until their entries are copied.
//
// # Variables
//
// All strings about starting and reaching a server or model may hold variables, in the forms of all tools:
//
//	${NAME}  ${env:NAME}  ${env://NAME}   an environment variable
//	${NAME:-default}  and so on           the same, with a default where it is not set or empty; the default may hold variables
//	${input:ID}                           the answer to one of the file's inputs, or its default
//	${file:PATH}                          the content of a file, without the line break at its end
//	${userHome}  ${workspaceFolder}  ${workspaceFolderBasename}  ${pathSeparator}  ${/}
//	$${                                   ${ itself
//
// $NAME is a variable in Gemini's files only, and %NAME% there on Windows. What has no value is never sent as it is written, and
// never left out: it is a [Problem] with the variable's name and place, and [Server.Resolve] gives no definition: the server needs
// configuration. A cwd, envFile or watchPath that is relative is so to the project's folder, or to the folder of a user's file.
//
// # Problems
//
// An entry that is wrong takes no other one with it: it stays in the list with its problems ([Server.Valid]). A file that cannot be
// parsed at all is [File.Broken].
package config
