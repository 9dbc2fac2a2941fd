package transcripts

// knownBug is why a transcript, whose lines are right, is not played well yet.
type knownBug struct {
	reason string
	sign   string // part of what the player says
}

var (
	subscribeUndeclared = knownBug{
		"resources/subscribe on a server that declares no resources is a method not found, as the other methods of resources are",
		`"code":-32002`,
	}
)

// known are transcripts that are expected to fail, each until its bug is gone.
var known = map[string]knownBug{
	"2024-11-05/resources.subscribe.method-not-found.txt": subscribeUndeclared,
	"2025-03-26/resources.subscribe.method-not-found.txt": subscribeUndeclared,
	"2025-06-18/resources.subscribe.method-not-found.txt": subscribeUndeclared,
	"2025-11-25/resources.subscribe.method-not-found.txt": subscribeUndeclared,
	"2026-07-28/server.discover.ok.modern-only.txt": {
		"server/discover offers all revisions, also those that the transport was told not to speak",
		`"supportedVersions":["2026-07-28","2025-11-25"`,
	},
	"2026-07-28/subscriptions.listen.invalid-params.absent.txt": {
		"the schema requires params.notifications; without it, a subscription to nothing is opened",
		"notifications/subscriptions/acknowledged",
	},
	"2026-07-28/tools.call.missing-capability.several.txt": {
		"requiredCapabilities lists all that is missing, not the first of it",
		`"requiredCapabilities":{"sampling":{}}`,
	},
}
