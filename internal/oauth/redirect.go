package oauth

// Ports at which package auth/desktop listens by default for the redirect of a login. The ports are
// fixed so that a registration stays valid: some authorization servers compare the port of a
// redirect URI. Metadata documents of clients list all of them.
const (
	FirstRedirectPort = 13316
	LastRedirectPort  = 13325
)
