package space

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

type nodeKind uint8

const (
	nodeNull nodeKind = iota
	nodeBool
	nodeNumber // text as written, not yet read
	nodeText
	nodeList
	nodeObject
)

func (k nodeKind) String() string {
	return [...]string{"null", "true or false", "a number", "a text", "a list", "a mapping"}[k]
}

// node is one value of a YAML or JSON file. Objects keep their members in order, including
// duplicates.
type node struct {
	kind    nodeKind
	line    int
	text    string // of a scalar
	items   []node
	members []entry
}

type entry struct {
	key   string
	line  int
	value node
}

// get returns the first member of that key, or nil.
func (n *node) get(key string) *node {
	for i := range n.members {
		if n.members[i].key == key {
			return &n.members[i].value
		}
	}
	return nil
}

// readTree reads a YAML or JSON file. JSON is recognised by its first character and its
// grammar. Text that begins like JSON but is not is tried as YAML's flow form.
func readTree(data []byte) (*node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > MaxFileBytes {
		return nil, &Error{Value: itoa(len(data)) + " bytes", Rule: "a space file has at most " + itoa(MaxFileBytes), Remedy: "use ranges in place of long lists"}
	}
	if !utf8.Valid(data) {
		return nil, &Error{Line: lineAt(data, invalidAt(data)), Rule: "the file is not valid UTF-8", Remedy: "save it as UTF-8"}
	}
	start := bytes.TrimLeft(data, " \t\r\n")
	if len(start) == 0 {
		return nil, &Error{Rule: "the file is empty", Remedy: "list the parameters under parameters:"}
	}
	if start[0] != '{' && start[0] != '[' {
		return readYAML(data)
	}
	fault := jsonSyntax(data)
	if fault == nil {
		return readJSON(data)
	}
	if tree, err := readYAML(data); err == nil {
		return tree, nil
	}
	return nil, fault
}

func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return len(data)
}

func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), len(data))], []byte("\n"))
}

func tooDeep(line int) error {
	return &Error{Line: line, Rule: "mappings and lists are nested at most " + itoa(MaxFileDepth) + " deep", Remedy: "a space needs no more than five levels"}
}

func tooMany(line int) error {
	return &Error{Line: line, Rule: "a file has at most " + itoa(MaxFileItems) + " values", Remedy: "use ranges in place of long lists"}
}

// scalar reads a node as the value it spells.
func (n *node) scalar() (v Value, rule, remedy string) {
	switch n.kind {
	case nodeText:
		return String(n.text), "", ""
	case nodeBool:
		b, _ := strconv.ParseBool(strings.ToLower(n.text))
		return Bool(b), "", ""
	case nodeNumber:
		v, rule, remedy = parseNumber(n.text)
		if rule == "" && v.kind == KindNone {
			rule, remedy = "this is not a number", "quote it if it is text"
		}
		if v.kind == KindFloat && !strings.ContainsAny(n.text, ".eE") {
			rule, remedy = "an integer has 64 bits", "write it with a dot or exponent to make it a float"
		}
		return v, rule, remedy
	case nodeNull:
		return Value{}, "null is not a value", `name the absence, for example "none"`
	default:
		return Value{}, "must be a single value, not " + n.kind.String(), "write one number, text, true or false"
	}
}

// number reads a node as a number. It refuses text, because the quotes are probably a mistake.
func (n *node) number() (v Value, rule, remedy string) {
	switch n.kind {
	case nodeNumber:
		v, rule, remedy = parseNumber(n.text)
		if rule == "" && v.kind == KindNone {
			rule, remedy = "this is not a number", "write a number"
		}
		return v, rule, remedy
	case nodeText:
		if v, rule, remedy = parseNumber(n.text); v.kind != KindNone {
			return Value{}, "must be a number, and this is text", "remove the quotes"
		}
		if rule != "" {
			return Value{}, rule, remedy
		}
	}
	return Value{}, "must be a number, not " + n.kind.String(), "write a number"
}

func (n *node) shown() string {
	switch n.kind {
	case nodeText:
		return quote(n.text)
	case nodeNumber:
		if len(n.text) > maxShownBytes {
			return n.text[:maxShownBytes] + "…"
		}
		return n.text
	case nodeBool:
		return n.text
	case nodeNull:
		return "null"
	default:
		return ""
	}
}
