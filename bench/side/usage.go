// Package side connects a measurement with a server in a child process by a side channel, a Unix
// socket that the server dials when it starts. The server sends its address and, on request, its
// use of resources. It exits when the channel is closed.
package side

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Usage counts the resources of a process: the first three fields since it started, the others at
// present.
type Usage struct {
	CPU       time.Duration
	Mallocs   float64
	Allocated float64 // bytes, in all
	InUse     float64 // bytes of heap and stacks
	Resident  float64 // bytes; 0 if the system does not report it
	Routines  float64 // goroutines
}

// Used returns the usage of this process. If collect is set, it collects garbage first.
func Used(collect bool) Usage {
	if collect {
		runtime.GC() // FreeOSMemory collects again: a sync.Pool is emptied by the second collection
		debug.FreeOSMemory()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Usage{
		CPU: cpu(), Mallocs: float64(m.Mallocs), Allocated: float64(m.TotalAlloc),
		InUse: float64(m.HeapAlloc + m.StackInuse), Resident: resident(), Routines: float64(runtime.NumGoroutine()),
	}
}

// resident returns the resident memory in bytes, from the second field of statm, which counts
// pages.
func resident() float64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(statm))[1], 64)
	if err != nil {
		return 0
	}
	return pages * float64(os.Getpagesize())
}

// Since returns the difference from an earlier usage.
func (u Usage) Since(before Usage) Usage {
	return Usage{
		u.CPU - before.CPU, u.Mallocs - before.Mallocs, u.Allocated - before.Allocated,
		u.InUse - before.InUse, u.Resident - before.Resident, u.Routines - before.Routines,
	}
}

// And returns the sum of the usages of two processes.
func (u Usage) And(v Usage) Usage {
	return Usage{
		u.CPU + v.CPU, u.Mallocs + v.Mallocs, u.Allocated + v.Allocated,
		u.InUse + v.InUse, u.Resident + v.Resident, u.Routines + v.Routines,
	}
}
