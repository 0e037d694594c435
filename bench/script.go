// Package bench holds the adapter through which tuner bench bo runs the optimisers
// of others, a program in Python. README.md beside it tells what it does.
package bench

import _ "embed"

// Script is the text of peers.py.
//
//go:embed peers.py
var Script string
