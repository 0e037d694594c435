// Package cudatest lets tests use devices that the CPU imitates. See ../cuda/fake/fake.cc
// for the faults that the environment can set. With BKB_CUDA_REAL=1 tests use the driver of
// the machine, and those of faults are skipped.
package cudatest
