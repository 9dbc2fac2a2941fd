package state

// TrustKey returns the key of the digests in agreements. The first call creates it. If several
// processes do so at once, all get the same key.
func (s *State) TrustKey() ([]byte, error) {
	key := s.current().TrustKey
	if key != "" {
		return []byte(key), nil
	}
	err := s.updateFile(func(now fileContent) []valueChange {
		if key = now.TrustKey; key != "" {
			return nil
		}
		key = NewToken()
		return []valueChange{{[]string{"trustKey"}, key}}
	})
	if err != nil {
		return nil, err
	}
	return []byte(key), nil
}
