package metric

import "bytes"

// QuoteWords turns the words NaN, Infinity and -Infinity, which Python writes
// into JSON, into strings. Before a colon they stay, because Python reads no such keys.
func QuoteWords(text []byte) []byte {
	var out []byte
	inString := false
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case inString && b == '\\' && i+1 < len(text):
			out = append(out, b)
			i++
			b = text[i]
		case b == '"':
			inString = !inString
		case !inString:
			if word := wordAt(text[i:]); word != "" {
				out = append(out, '"')
				out = append(out, word...)
				b = '"'
				i += len(word) - 1
			}
		}
		out = append(out, b)
	}
	return out
}

func wordAt(text []byte) string {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		rest, ok := bytes.CutPrefix(text, []byte(word))
		if ok && !bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":")) {
			return word
		}
	}
	return ""
}
