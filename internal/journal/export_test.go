package journal

// OpenRequests returns the number of requests that wait for a response.
func (r *Recorder) OpenRequests() int {
	r.Flush()
	r.keeperMu.Lock()
	defer r.keeperMu.Unlock()
	return len(r.keeper.open) + len(r.keeper.links) + len(r.keeper.tokens)
}
