// Package interop tests dowel against software of other authors: the TypeScript SDK's reference
// servers and clients from npm, servers and clients on the official Go SDK and on mcp-go, badly
// behaved servers, client libraries (AI SDK, LangChain, Mastra, mcp-use) and proxies (mcp-remote,
// supergateway, mcp-proxy).
//
// The tests build the dowel command from the module above and use it only through its command line.
// They need Node 20 or newer and the packages that install.sh installs; without them they fail.
// They look for processes left behind in /proc, so they run on Linux.
package interop
