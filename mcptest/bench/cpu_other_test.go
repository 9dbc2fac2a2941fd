//go:build !unix

package bench

import "time"

// cpuTime is not known here: the ratio of processor times is reported as 0.
func cpuTime() time.Duration { return 0 }
