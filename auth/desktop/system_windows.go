package desktop

import "golang.org/x/sys/windows"

// errInUse is the error of listening at a port that another program uses.
const errInUse = windows.WSAEADDRINUSE
