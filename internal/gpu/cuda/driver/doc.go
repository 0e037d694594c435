// Package driver lets a program with gorgonia.org/cu be built without the CUDA toolkit, and
// start without the CUDA driver.
//
// Package cu needs the header cuda.h and the library libcuda when it is built, and it ends
// the process before main if the driver does not start. This package has a header made from
// the module of cu itself (see gen), a script in place of the library, and a function of
// each name that cu uses. Those functions return an error until [Open] has loaded the
// driver of the machine.
//
// cgo takes the header from the environment, because a package cannot set the flags of
// another one. The Makefile does so,
//
//	export CGO_CFLAGS="-O2 -g -I$PWD/internal/gpu/cuda/driver/include"
//	export CGO_LDFLAGS="-L$PWD/internal/gpu/cuda/driver/lib"
//	go build -tags cuda ./cmd/tuner
package driver

//go:generate go -C ../../../../tools run ./cudadriver
