package transcripts

// knownBug is why a transcript, whose lines are right, is not played well yet.
type knownBug struct {
	reason string
	sign   string // part of what the player says
}

// known are transcripts that are expected to fail, each until its bug is gone.
var known = map[string]knownBug{}
