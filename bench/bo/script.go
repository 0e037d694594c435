package bo

import _ "embed"

// script is the text of peers.py, the adapter through which bench bo runs other
// projects' optimisers. bench/README.md describes it.
//
//go:embed peers.py
var script string
