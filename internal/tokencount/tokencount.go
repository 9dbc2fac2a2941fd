// Package tokencount estimates the number of tokens of texts. Each provider counts in its own way,
// and reports the count only with its reply. Until then four ASCII characters, or one other
// character, count as a token. The estimate is close for English and JSON, and too high for most
// other texts.
package tokencount

// toolOverhead is added to the texts of a tool's definition.
const toolOverhead = 8

// EstimateText estimates the tokens of a text.
func EstimateText[T ~string | ~[]byte](text T) int {
	ascii, other := 0, 0
	for i := range len(text) {
		switch b := text[i]; {
		case b < 0x80:
			ascii++
		case b >= 0xC0: // the first byte of a character
			other++
		}
	}
	return (ascii+3)/4 + other
}

// EstimateTool estimates the tokens of a tool's definition, as models get it.
func EstimateTool(name, description string, inputSchema []byte) int {
	return toolOverhead + EstimateText(name) + EstimateText(description) + EstimateText(inputSchema)
}
