// The tests of the console in a browser. A module of its own, so that the browser's driver stays out of dowel's go.mod.
module github.com/dowel-mcp/dowel/browser

go 1.26.0

replace github.com/dowel-mcp/dowel => ../

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/dowel-mcp/dowel v0.0.0-00010101000000-000000000000
)

require (
	github.com/coder/websocket v1.8.15 // indirect
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)
