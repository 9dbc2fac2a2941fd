package schema

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// Two JSON values count as equal if their hashes are equal: 64 bits under a secret random seed. So
// a comparison takes one pass, whatever the order of members and the notation of numbers.
var hashSeed = maphash.MakeSeed()

// hashValue is the hash of the value at i, which is well-formed.
func (s *scan) hashValue(i int) (end int, hash uint64) {
	switch b := s.byteAt(i); b {
	case '{':
		return s.hashObject(i)
	case '[':
		hash = '['
		end = s.skipSpace(i + 1)
		for s.byteAt(end) != ']' {
			var item uint64
			end, item = s.hashValue(end)
			hash = mixHashes(hash, item)
			if end = s.skipSpace(end); s.byteAt(end) == ',' {
				end = s.skipSpace(end + 1)
			}
		}
		return end + 1, mixHashes(hash, ']')
	case '"':
		end, content := s.readString(i)
		text := s.data[i+1 : end-1]
		if content&rawjson.HasEscape == 0 {
			return end, mixHashes('"', maphash.Bytes(hashSeed, text))
		}
		m := s.markNames()
		hash = mixHashes('"', maphash.Bytes(hashSeed, s.unescape(s.data[i:end])))
		s.names.text = s.names.text[:m.text]
		return end, hash
	case 't', 'f', 'n':
		return s.skipValue(i), mixHashes(uint64(b), 0)
	}
	end, _ = s.readNumber(i)
	return end, s.hashNumber(parseDecimal(s.data[i:end]))
}

// hashObject adds the hashes of the members up, so that their order does not matter.
func (s *scan) hashObject(i int) (end int, hash uint64) {
	for i = s.skipSpace(i + 1); s.byteAt(i) != '}'; {
		m := s.markNames()
		name, value := s.readKey(i)
		key := maphash.Bytes(hashSeed, name)
		if s.names != nil {
			s.names.text = s.names.text[:m.text]
		}
		var h uint64
		i, h = s.hashValue(value)
		hash += mixHashes(key, h)
		if i = s.skipSpace(i); s.byteAt(i) == ',' {
			i = s.skipSpace(i + 1)
		}
	}
	return i + 1, mixHashes('{', hash)
}

func (s *scan) hashNumber(d decimal) uint64 {
	if len(d.digits) == 0 {
		return mixHashes('0', 0)
	}
	digits := d.digits
	var m mark
	dot := bytes.IndexByte(digits, '.')
	if dot >= 0 {
		s.borrowNames()
		m = s.markNames()
		s.names.text = append(append(s.names.text, digits[:dot]...), digits[dot+1:]...)
		digits = s.names.text[m.text:]
	}
	hash := mixHashes(mixHashes('0'+uint64(d.sign()), uint64(d.point)), maphash.Bytes(hashSeed, digits))
	if dot >= 0 {
		s.names.text = s.names.text[:m.text]
	}
	return hash
}

func mixHashes(a, b uint64) uint64 {
	var pair [16]byte
	binary.LittleEndian.PutUint64(pair[:], a)
	binary.LittleEndian.PutUint64(pair[8:], b)
	return maphash.Bytes(hashSeed, pair[:])
}
