// Package journal records the frames between clients and dowel and between dowel and servers, joins
// them into operations, and keeps the newest of them in memory.
//
//	r := journal.New(journal.Options{Secrets: secrets})
//	defer r.Close()
//	ctx = framesink.WithDialing(ctx, r.ServerConn("github"))   // the leg to a server
//	ctx = framesink.WithServing(ctx, r.ClientConn())           // the leg to a client
//	handler = mcp.Chain(handler, r.Middleware())               // joins the legs
//
//	cursor := r.Cursor(0)
//	for {
//		records, gap, err := cursor.Next(ctx, 256)
//		…
//	}
//
// An operation is one call as its client means it: all rounds of input_required, all polls of a
// task, its progress and questions, on both legs. The legs are joined by the context of the call,
// and the rounds by the request state, never by a guess: what cannot be told stays an operation of
// its own.
//
// A connection only copies its frame into the inbox. Frames are parsed, masked and stored soon
// afterwards, by a timer that runs only while there are some. If the inbox is full, frames are
// lost, and a gap in the sequence numbers says how many. A reader has a position and no queue: it
// finds a gap, too, if it is slower than the ring.
package journal
