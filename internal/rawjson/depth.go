package rawjson

// Depth returns how deeply objects and arrays are nested in data, which has passed [Check]. A
// string or number has depth 0.
func Depth(data []byte) (deepest int) {
	depth := 0
	for pos := 0; pos < len(data); pos++ {
		switch data[pos] {
		case '"':
			for pos++; pos < len(data) && data[pos] != '"'; pos++ {
				if data[pos] == '\\' {
					pos++
				}
			}
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}
