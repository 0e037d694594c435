package bench

import _ "embed"

// Script is the text of peers.py, the adapter through which tuner bench bo runs other
// projects' optimisers. README.md describes it.
//
//go:embed peers.py
var Script string
