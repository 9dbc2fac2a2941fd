package server

import "github.com/dowel-mcp/dowel/mcp"

// serveDiscover answers server/discover.
func (s *Server) serveDiscover() (*mcp.Result, error) {
	result := s.newResult(&mcp.DiscoverResult{
		SupportedVersions: mcp.Revisions(), Capabilities: s.offeredCapabilities(), Instructions: s.opts.Instructions,
	})
	result.Cache = s.opts.Cache.Discover
	if result.Cache.Scope == "" {
		result.Cache.Scope = mcp.CachePublic
	}
	return result, nil
}

// offeredCapabilities are what the server offers now.
func (s *Server) offeredCapabilities() mcp.ServerCapabilities {
	c := mcp.ServerCapabilities{Extensions: s.vocabulary.Declare(), Experimental: s.opts.Experimental}
	if s.catalog.offers(KindTool) {
		c.Tools = &mcp.ListCapability{ListChanged: true}
	}
	if s.catalog.offers(KindPrompt) {
		c.Prompts = &mcp.ListCapability{ListChanged: true}
	}
	if s.catalog.offers(KindResource) {
		c.Resources = &mcp.ResourcesCapability{ListChanged: true, Subscribe: true}
	}
	if s.catalog.hasCompleters() {
		c.Completions = &struct{}{}
	}
	if !s.opts.NoLogging {
		c.Logging = &struct{}{}
	}
	return c
}
