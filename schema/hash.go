package schema

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// Two JSON values count as equal where their hashes are: 64 bits under a seed
// that nobody outside the process can know. So equality costs one pass, however
// the members of objects are ordered and numbers are written.
var hashSeed = maphash.MakeSeed()

// hash is the hash of the value at i, which is well-formed.
func (s *scan) hash(i int) (end int, hash uint64) {
	switch b := s.at(i); b {
	case '{':
		return s.hashObject(i)
	case '[':
		hash = '['
		end = s.space(i + 1)
		for s.at(end) != ']' {
			var item uint64
			end, item = s.hash(end)
			hash = mix(hash, item)
			if end = s.space(end); s.at(end) == ',' {
				end = s.space(end + 1)
			}
		}
		return end + 1, mix(hash, ']')
	case '"':
		end, flags := s.text(i)
		text := s.data[i+1 : end-1]
		if flags&hasEscape == 0 {
			return end, mix('"', maphash.Bytes(hashSeed, text))
		}
		m := s.mark()
		hash = mix('"', maphash.Bytes(hashSeed, s.unescape(text)))
		s.names.text = s.names.text[:m.text]
		return end, hash
	case 't', 'f', 'n':
		return s.skip(i), mix(uint64(b), 0)
	}
	end, _ = s.number(i)
	return end, s.hashNumber(parseDecimal(s.data[i:end]))
}

// hashObject adds the members' hashes up, whose order does not matter.
func (s *scan) hashObject(i int) (end int, hash uint64) {
	for i = s.space(i + 1); s.at(i) != '}'; {
		m := s.mark()
		name, value := s.key(i)
		key := maphash.Bytes(hashSeed, name)
		if s.names != nil {
			s.names.text = s.names.text[:m.text]
		}
		var h uint64
		i, h = s.hash(value)
		hash += mix(key, h)
		if i = s.space(i); s.at(i) == ',' {
			i = s.space(i + 1)
		}
	}
	return i + 1, mix('{', hash)
}

func (s *scan) hashNumber(d decimal) uint64 {
	if len(d.digits) == 0 {
		return mix('0', 0)
	}
	digits := d.digits
	var m mark
	dot := bytes.IndexByte(digits, '.')
	if dot >= 0 {
		s.borrow()
		m = s.mark()
		s.names.text = append(append(s.names.text, digits[:dot]...), digits[dot+1:]...)
		digits = s.names.text[m.text:]
	}
	hash := mix(mix('0'+uint64(d.sign()), uint64(d.point)), maphash.Bytes(hashSeed, digits))
	if dot >= 0 {
		s.names.text = s.names.text[:m.text]
	}
	return hash
}

func mix(a, b uint64) uint64 {
	var pair [16]byte
	binary.LittleEndian.PutUint64(pair[:], a)
	binary.LittleEndian.PutUint64(pair[8:], b)
	return maphash.Bytes(hashSeed, pair[:])
}
