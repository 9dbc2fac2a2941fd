package stdio

import "github.com/dowel-mcp/dowel/internal/lazyregexp"

// loginLines is the number of lines of stderr in which a prompt for a login is looked for.
const loginLines = 40

// loginPrompt matches the two prompts of mcp-remote 0.15, which then waits until the user has
// logged in at the address on the next line; each line may begin with its process id. loginDone
// matches its lines after that.
var (
	loginPrompt = lazyregexp.New(`(?i)(?:please authorize this client by visiting|to authorize this client, visit):?\s+(?:\[\d+\]\s+)?(https?://\S+)`)
	loginDone   = lazyregexp.New(`(?i)auth(orization)? code received|completing authorization|connected to remote server|proxy established|authentication (was )?(completed|successful)|signed in without a browser|re-authorized with the remote|authorization error:`)
)

// findLogin returns the address at which the user must log in, or "" if the server does not wait
// for that.
func findLogin(stderr string) string {
	all := loginPrompt().FindAllStringSubmatchIndex(stderr, -1)
	if all == nil {
		return ""
	}
	last := all[len(all)-1]
	if loginDone().MatchString(stderr[last[1]:]) {
		return ""
	}
	return stderr[last[2]:last[3]]
}
