package simd

import (
	"testing"
	"unsafe"
)

func TestSized(t *testing.T) {
	t.Run("float64", sized[float64])
	t.Run("float32", sized[float32])
}

func sized[T Float](t *testing.T) {
	var s []T
	for _, n := range []int{0, 1, 7, 100, 8} {
		before := unsafe.SliceData(s)
		fits := n <= cap(s)
		got := Sized(&s, n)
		if len(got) != n || len(s) != n || unsafe.SliceData(got) != unsafe.SliceData(s) {
			t.Fatalf("n = %d: %d elements, and %d are kept", n, len(got), len(s))
		}
		if at := unsafe.SliceData(s); fits != (at == before) || uintptr(unsafe.Pointer(at))%64 != 0 {
			t.Fatalf("n = %d: memory at %p after %p, where the old one is large enough: %v", n, at, before, fits)
		}
	}
}
