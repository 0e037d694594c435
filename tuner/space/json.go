package space

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// readJSON reads valid JSON.
func readJSON(data []byte) (*node, error) {
	r := &jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1}
	r.dec.UseNumber()
	tree := new(node)
	return tree, r.value(tree, 0)
}

// jsonSyntax returns the first syntax error, with its line, or nil.
func jsonSyntax(data []byte) error {
	var raw json.RawMessage
	err := json.Unmarshal(data, &raw)
	if err == nil {
		return nil
	}
	line := lineAt(data, len(data))
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line = lineAt(data, int(syntax.Offset)-1)
	}
	return &Error{Line: line, Rule: "not valid JSON: " + strings.TrimPrefix(err.Error(), "json: "), Remedy: "correct the syntax there"}
}

// jsonReader builds nodes from a stream of tokens. It is only used on valid JSON.
type jsonReader struct {
	data    []byte
	dec     *json.Decoder
	line    int
	counted int // bytes of data whose lines are counted in line
	items   int
}

// token returns the next token and keeps the line up to date.
func (r *jsonReader) token() (json.Token, error) {
	t, err := r.dec.Token()
	at := int(r.dec.InputOffset())
	r.line += bytes.Count(r.data[r.counted:at], []byte("\n"))
	r.counted = at
	return t, err
}

func (r *jsonReader) value(n *node, depth int) error {
	t, err := r.token()
	if err != nil {
		return err
	}
	n.line = r.line
	if r.items++; r.items > MaxFileItems {
		return tooMany(n.line)
	}
	switch t := t.(type) {
	case json.Delim:
		if depth >= MaxFileDepth {
			return tooDeep(n.line)
		}
		if t == '[' {
			return r.list(n, depth)
		}
		return r.object(n, depth)
	case string:
		n.kind, n.text = nodeText, t
	case json.Number:
		n.kind, n.text = nodeNumber, t.String()
	case bool:
		n.kind, n.text = nodeBool, Bool(t).String()
	default:
		n.kind = nodeNull
	}
	return nil
}

func (r *jsonReader) list(n *node, depth int) error {
	n.kind = nodeList
	for r.dec.More() {
		n.items = append(n.items, node{})
		if err := r.value(&n.items[len(n.items)-1], depth+1); err != nil {
			return err
		}
	}
	_, err := r.token()
	return err
}

func (r *jsonReader) object(n *node, depth int) error {
	n.kind = nodeObject
	for r.dec.More() {
		key, err := r.token()
		if err != nil {
			return err
		}
		if r.items++; r.items > MaxFileItems {
			return tooMany(r.line)
		}
		text, _ := key.(string) // guaranteed by JSON's grammar
		n.members = append(n.members, entry{key: text, line: r.line})
		if err := r.value(&n.members[len(n.members)-1].value, depth+1); err != nil {
			return err
		}
	}
	_, err := r.token()
	return err
}
