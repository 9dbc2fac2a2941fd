package journal

import (
	"hash/maphash"

	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// maxHeaders limits the headers that are remembered.
const maxHeaders = 256

// headerMasker masks headers. Most requests of a client have the same header, so that each is
// masked once and shared.
type headerMasker struct {
	seed   maphash.Seed
	masked map[uint64]map[string][]string // by the hash of the header
}

// lengthField is left out: the size of a frame says it, and it differs for each.
const lengthField = "Content-Length"

// mask returns a header without secrets, which must not be changed.
func (m *headerMasker) mask(header map[string][]string, secrets *secretmask.Set) map[string][]string {
	if header == nil {
		return nil
	}
	if m.masked == nil {
		m.seed, m.masked = maphash.MakeSeed(), map[uint64]map[string][]string{}
	}
	hash := m.hash(header)
	if known, ok := m.masked[hash]; ok {
		return known
	}
	masked := map[string][]string{}
	for name, values := range secretmask.Header(header) { // values may be shared with header
		if name == lengthField {
			continue
		}
		for _, value := range values {
			masked[name] = append(masked[name], secrets.Known(value))
		}
	}
	forgetOne(m.masked, maxHeaders)
	m.masked[hash] = masked
	return masked
}

// hash returns a hash that does not depend on the order of the fields.
func (m *headerMasker) hash(header map[string][]string) (sum uint64) {
	for name, values := range header {
		if name == lengthField {
			continue
		}
		field := maphash.String(m.seed, name)
		for _, value := range values {
			field = field*31 + maphash.String(m.seed, value)
		}
		sum += field ^ field>>29
	}
	return sum
}
