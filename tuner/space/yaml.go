package space

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML reads a YAML file of one document, without anchors, aliases, merge keys and tags.
func readYAML(data []byte) (*node, error) {
	if marks := yamlMarks(data); marks > MaxYAMLMarks {
		return nil, &Error{Value: itoa(marks) + " items", Rule: "a YAML file has at most " + itoa(MaxYAMLMarks) + " commas, colons, brackets and lines", Remedy: "write it as JSON, or use ranges in place of long lists"}
	}
	doc, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	tree := new(node)
	if len(doc.Content) == 0 {
		return tree, nil
	}
	return tree, convertYAML(doc.Content[0], tree, 0)
}

// yamlMarks counts the characters that can begin a value. The count bounds the memory of
// the YAML reader before it runs.
func yamlMarks(data []byte) int {
	marks := 0
	for i, c := range data {
		switch c {
		case ',', ':', '[', '{', '?', '\n', '\r':
			marks++
		case '-':
			if i+1 < len(data) && (data[i+1] == ' ' || data[i+1] == '\t') {
				marks++
			}
		}
	}
	return marks
}

// parseYAML runs the YAML reader. If the reader panics, parseYAML reports it as a fault of
// the file.
func parseYAML(data []byte) (doc *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			doc, err = nil, &Error{Rule: fmt.Sprintf("not readable as YAML: %v", p), Remedy: "simplify the file, or write it as JSON"}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	doc = new(yaml.Node)
	if err := dec.Decode(doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &Error{Rule: "the file is empty", Remedy: "list the parameters under parameters:"}
		}
		return nil, yamlFault(err)
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, yamlFault(err)
		}
		return nil, &Error{Line: second.Line, Rule: "a space file holds one YAML document", Remedy: "remove what follows ---"}
	}
	return doc, nil
}

// yamlFault rewords an error of the YAML reader, such as "yaml: line 3: text".
func yamlFault(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if n, e := fmt.Sscanf(text, "line %d:", &line); n == 1 && e == nil {
		_, text, _ = strings.Cut(text, ": ")
	}
	return &Error{Line: line, Rule: "not valid YAML: " + text, Remedy: "correct the syntax there"}
}

func convertYAML(y *yaml.Node, n *node, depth int) error {
	n.line = y.Line
	if err := refuseYAML(y); err != nil {
		return err
	}
	if y.Kind != yaml.ScalarNode && depth >= MaxFileDepth {
		return tooDeep(y.Line)
	}
	switch y.Kind {
	case yaml.ScalarNode:
		convertScalar(y, n)
		return nil
	case yaml.SequenceNode:
		n.kind = nodeList
		n.items = make([]node, len(y.Content))
		for i, item := range y.Content {
			if err := convertYAML(item, &n.items[i], depth+1); err != nil {
				return err
			}
		}
		return nil
	default:
		return convertMapping(y, n, depth)
	}
}

// refuseYAML refuses the features that give a file a hidden meaning.
func refuseYAML(y *yaml.Node) error {
	switch {
	case y.Kind == yaml.AliasNode:
		return &Error{Line: y.Line, Value: "*" + y.Value, Rule: "aliases are not supported", Remedy: "write the value out"}
	case y.Anchor != "":
		return &Error{Line: y.Line, Value: "&" + y.Anchor, Rule: "anchors are not supported", Remedy: "remove it"}
	case y.Style&yaml.TaggedStyle != 0:
		return &Error{Line: y.Line, Value: y.Tag, Rule: "tags are not supported", Remedy: "remove it; quote the value if it is text"}
	default:
		return nil
	}
}

func convertMapping(y *yaml.Node, n *node, depth int) error {
	n.kind = nodeObject
	n.members = make([]entry, len(y.Content)/2)
	for i := range n.members {
		key, value := y.Content[2*i], y.Content[2*i+1]
		if err := refuseYAML(key); err != nil {
			return err
		}
		if key.Kind != yaml.ScalarNode {
			return &Error{Line: key.Line, Rule: "a key is text", Remedy: "write a single word before the colon"}
		}
		if key.Tag == "!!merge" {
			return &Error{Line: key.Line, Value: "<<", Rule: "merge keys are not supported", Remedy: "write the fields out"}
		}
		n.members[i] = entry{key: key.Value, line: key.Line}
		if err := convertYAML(value, &n.members[i].value, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// convertScalar determines the kind of a scalar. A plain scalar that any reader might take
// for a number is one, and [parseNumber] then checks its text.
func convertScalar(y *yaml.Node, n *node) {
	n.text = y.Value
	plain := y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	_, decimal := decimalSyntax(y.Value)
	switch {
	case !plain:
		n.kind = nodeText
	case decimal, y.Tag == "!!int", y.Tag == "!!float", y.Tag == "!!timestamp":
		n.kind = nodeNumber
	case y.Tag == "!!bool":
		n.kind = nodeBool
	case y.Tag == "!!null":
		n.kind = nodeNull
	default:
		n.kind = nodeText
		if rule, _ := strangeNumber(y.Value); rule != "" {
			n.kind = nodeNumber
		}
	}
}
