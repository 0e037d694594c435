//go:build cuda && cgo && linux

// Package kernels has the code of the device as PTX, with its source.
package kernels

import _ "embed"

//go:generate go -C ../../../../tools run ./cudakernels

// Product has the kernels of product.cu.
//
//go:embed product.ptx
var Product string

// Algebra has the kernels of algebra.cu.
//
//go:embed algebra.ptx
var Algebra string
