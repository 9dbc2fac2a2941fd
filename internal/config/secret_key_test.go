package config

import (
	"strings"
	"testing"
)

// A key in place of its path is a secret, in every form that people paste.
func TestIsKeyText(t *testing.T) {
	for value, want := range map[string]bool{
		"keys/bot.pem": false, "/home/ada/.config/dowel/keys/bot.pem": false, `C:\keys\bot.pem`: false, "/" + strings.Repeat("keys/", 20) + "bot": false, "${BOT_KEY}": false,
		"-----BEGIN PRIVATE KEY-----MC4CAQ": true, "MC4CAQ\nAwBQ": true,
		"MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF":                   true,
		"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg" + strings.Repeat("a", 130) + "==": true,
	} {
		if got := IsKeyText(value); got != want {
			t.Errorf("%s: %t, want %t", value, got, want)
		}
	}
}
