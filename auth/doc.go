// Package auth authorizes the requests of a client to MCP servers with OAuth: discovery of the
// authorization server, registration, the user's login, tokens and their refresh. A [Transport] is
// an [http.RoundTripper] that does this below every transport over HTTP:
//
//	t, err := auth.NewTransport("https://mcp.example.com/mcp", &auth.Options{Login: login})
//	c, err := client.Dial(ctx, "https://mcp.example.com/mcp", &client.Options{
//		HTTP: client.HTTP{Client: &http.Client{Transport: t}},
//	})
//
// The Transport sends the first request without a token. It begins to look for an authorization
// server when the MCP server answers with status 401. [Options.Login] shows the user the page of
// the authorization server; without it, and in programs without a user, a request fails with
// [*NeedsLogin]. A [Store] keeps tokens beyond the life of the program.
//
// Package auth/desktop has a Login with a browser and a Store of encrypted files. Package
// auth/resource is the other side: a server that checks tokens.
package auth
