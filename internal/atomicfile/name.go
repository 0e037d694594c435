package atomicfile

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// longest is the number of bytes in a name that is made of the text alone. Systems allow 255
// with all endings.
const longest = 160

// Name makes the name of a file from any text. Letters, digits and some signs stay as they are,
// and other bytes become %xx. So a name leads to no other folder, different texts have
// different names, and a long one ends with a checksum.
func Name(text string) string {
	var b strings.Builder
	for i, c := range []byte(text) {
		switch {
		case c == '.' && (i == 0 || i == len(text)-1):
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.,+=@~", c) >= 0:
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02x", c)
	}
	switch name := b.String(); {
	case name == "":
		return "%"
	case len(name) > longest:
		return fmt.Sprintf("%s%%%x", name[:longest-32], sha256.Sum256([]byte(text)))
	default:
		return name
	}
}
