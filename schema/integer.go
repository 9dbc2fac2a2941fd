package schema

import "math/big"

// plainIntegers rewrites numbers such as 5.0 and 1e3 as 5 and 1000. Models send such numbers, JSON
// Schema 2020-12 calls them integers, but the decoder refuses them. changed is false if the data
// has no such numbers.
func plainIntegers(data []byte) (out []byte, changed bool) {
	for pos := 0; pos < len(data); {
		switch c := data[pos]; {
		case c == '"':
			end := stringEnd(data, pos)
			out = append(out, data[pos:end]...)
			pos = end
		case c == '-' || c >= '0' && c <= '9':
			end := numberEnd(data, pos)
			plain, ok := plainInteger(data[pos:end])
			out, changed = append(out, plain...), changed || ok
			pos = end
		default:
			out = append(out, c)
			pos++
		}
	}
	return out, changed
}

func stringEnd(data []byte, pos int) int {
	for pos++; pos < len(data) && data[pos] != '"'; pos++ {
		if data[pos] == '\\' {
			pos++
		}
	}
	return min(pos+1, len(data))
}

func numberEnd(data []byte, pos int) int {
	for ; pos < len(data); pos++ {
		switch c := data[pos]; {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
		default:
			return pos
		}
	}
	return pos
}

// plainInteger rewrites one number. It skips long numbers, because they fit no Go integer.
func plainInteger(number []byte) (plain []byte, changed bool) {
	const longest, widest = 32, 2 // characters of a number, and of its exponent
	fraction, exponent := false, 0
	for i, c := range number {
		fraction = fraction || c == '.'
		if c == 'e' || c == 'E' {
			exponent = len(number) - i - 1
		}
	}
	if len(number) > longest || exponent > widest || !fraction && exponent == 0 {
		return number, false
	}
	r, ok := new(big.Rat).SetString(string(number))
	if !ok || !r.IsInt() {
		return number, false
	}
	return r.Num().Append(nil, 10), true
}
