//go:build cuda && cgo && linux

package kernel

import _ "github.com/bkbtuner/bkb/internal/gpu/cuda" // the backend of package gpu
