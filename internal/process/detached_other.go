//go:build !linux

package process

import "time"

// endDetached does nothing: this system does not show the environments of processes.
func endDetached(string, time.Duration) {}
