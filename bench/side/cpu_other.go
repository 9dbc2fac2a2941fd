//go:build !unix

package side

import "time"

// cpu returns 0: the processor time is unknown on this system.
func cpu() time.Duration { return 0 }
