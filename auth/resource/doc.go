// Package resource makes an MCP server over HTTP a resource server of OAuth (page
// basic/authorization of the specification): it accepts the access tokens of authorization servers
// that you name, and tells clients where to get one.
//
//	guard, err := resource.New(resource.Options{
//		URL:     "https://mcp.example.com/mcp",
//		Issuers: []resource.Issuer{{URL: "https://login.example.com"}},
//		Scopes:  []string{"notes:read"},
//	})
//	endpoint := streamable.Handler(server, nil)
//	http.ListenAndServe(":8080", guard.Protect(endpoint))
//
// Protect answers requests without a valid token with the challenges of the specification, and
// serves the protected resource metadata (RFC 9728). Tokens are signed (JWT, RFC 9068), opaque
// ([Introspection], RFC 7662) or bound to a key of the client (DPoP, RFC 9449).
//
// The transports of this module take the verified user as the [mcp.Principal] of each request.
// Sessions, request state, cursors, subscriptions, private caches and limits belong to the
// principal. [FromContext] returns the token to a handler. server.ToolOptions.Scopes lists the
// scopes of one tool.
//
// Tokens are for this server alone: do not send them to another one.
package resource
