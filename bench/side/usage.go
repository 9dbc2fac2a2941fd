// Package side is the side channel between a server in a process of its own and who measures it: a Unix socket that the server
// dials when it starts. On it the server says where it listens and, when asked, what it has used. The end of the channel
// is the end of the server.
package side

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used so far, and what it has in use.
type Usage struct {
	CPU       time.Duration
	Mallocs   float64
	Allocated float64 // bytes, in all
	InUse     float64 // bytes of heap and stacks
	Resident  float64 // bytes; 0 where the system does not say
	Routines  float64
}

// Used is the usage of this process; with collect, once garbage is gone.
func Used(collect bool) Usage {
	if collect {
		runtime.GC() // twice, since what pools hold takes two
		debug.FreeOSMemory()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Usage{
		CPU: cpu(), Mallocs: float64(m.Mallocs), Allocated: float64(m.TotalAlloc),
		InUse: float64(m.HeapAlloc + m.StackInuse), Resident: resident(), Routines: float64(runtime.NumGoroutine()),
	}
}

// resident reads the second figure of statm, pages in memory.
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

// Since is the usage since an earlier one.
func (u Usage) Since(before Usage) Usage {
	return Usage{
		u.CPU - before.CPU, u.Mallocs - before.Mallocs, u.Allocated - before.Allocated,
		u.InUse - before.InUse, u.Resident - before.Resident, u.Routines - before.Routines,
	}
}

// And is the usage of two processes.
func (u Usage) And(v Usage) Usage {
	return Usage{
		u.CPU + v.CPU, u.Mallocs + v.Mallocs, u.Allocated + v.Allocated,
		u.InUse + v.InUse, u.Resident + v.Resident, u.Routines + v.Routines,
	}
}
