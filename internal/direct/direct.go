// Package direct is the contract of connections within one process. Such a connection has a reading
// loop at each end, like any other. While no frame waits for the loop of an end, a frame for that
// end need not wait either: the goroutine that sends it handles it.
//
// The frames of a connection keep their order, because a frame is delivered only when all frames
// that were written before have been handled.
package direct

// Conn is a transport.Conn that can deliver frames to its other end.
type Conn interface {
	// SetReceiver sets the receiver of the frames for this end. Without a receiver, all frames wait
	// for Read.
	SetReceiver(r Receiver)
	// Deliver passes frame to the receiver of the other end, on the caller's goroutine, and runs
	// the work that the receiver returns. It waits for nothing but this work.
	//
	// If it reports false, it has done nothing, and the caller must write the frame: frames that
	// were written before have not been handled yet, the connection is closed, or the receiver
	// leaves the frame to the reading loop.
	Deliver(frame []byte, s Sending) bool
}

// Sending holds the sender's instructions for a frame.
type Sending struct {
	// Lend allows the receiver to return the handler of a request as work for the sender's
	// goroutine. Otherwise the handler runs on a goroutine of the receiver.
	Lend bool
	// Show is called with the frame before it has any effect; nil for none.
	Show func(frame []byte)
}

// Receiver handles delivered frames.
type Receiver interface {
	// Receive handles frame and owns it, or reports false and has done nothing. It must not wait. w
	// is nil if no work is left.
	// Several calls may run at the same time, but none while the reading loop handles a frame, and
	// none after the loop has ended.
	Receive(frame []byte, s Sending) (w Work, ok bool)
}

// Work is the rest of a receiver's work for a frame. It may wait.
type Work interface{ Run() }
