// Package modelkeys keeps the keys of model providers away from the processes that dowel starts.
//
// [Hide] moves the keys from the environment of this process to this package: child processes do
// not inherit them, and on Linux /proc/PID/environ of this process does not show them. Code of
// dowel that needs a key, or resolves a ${VARIABLE}, uses [LookupEnv].
package modelkeys

import (
	"os"
	"slices"
	"sync"
)

// Names are the environment variables that hold the keys.
var Names = []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}

var (
	mu     sync.Mutex
	hidden = map[string]string{}
)

// Hide removes the keys from the environment. A program calls it first.
func Hide() {
	mu.Lock()
	defer mu.Unlock()
	found := false
	for _, name := range Names {
		if value, ok := os.LookupEnv(name); ok {
			hidden[name], found = value, true
			_ = os.Unsetenv(name) // fails for invalid names only
		}
	}
	if found {
		eraseEnviron(Names)
	}
}

// LookupEnv is [os.LookupEnv], but also returns hidden keys.
func LookupEnv(name string) (string, bool) {
	if value, ok := os.LookupEnv(name); ok || !slices.Contains(Names, name) {
		return value, ok
	}
	mu.Lock()
	defer mu.Unlock()
	value, ok := hidden[name]
	return value, ok
}

// Getenv is [os.Getenv], but also returns hidden keys.
func Getenv(name string) string {
	value, _ := LookupEnv(name)
	return value
}
