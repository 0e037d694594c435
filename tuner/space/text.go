package space

import "unicode"

// Hostile reports whether no text that anybody sends may contain r. Control characters, which do
// not show or change what does on a terminal, characters that turn the direction of writing,
// further line separators, and the code points that Unicode keeps from text, which YAML and XML
// refuse. Texts of several lines make exceptions of their tabs and line ends.
func Hostile(r rune) bool {
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' ||
		r&0xfffe == 0xfffe || 0xfdd0 <= r && r <= 0xfdef
}

// Middle cuts a text to at most n characters, in the middle, because names often differ at
// their ends.
func Middle(text string, n int) string {
	r := []rune(text)
	if len(r) <= n || n < 3 {
		return string(r[:min(n, len(r))])
	}
	return string(r[:n/2]) + "…" + string(r[len(r)-(n-1-n/2):])
}

// Head cuts a text to at most n characters.
func Head(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:n-1]) + "…"
}
