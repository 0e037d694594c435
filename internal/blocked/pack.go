package blocked

import "github.com/bkbtuner/bkb/internal/simd"

// pack copies the m×k operand into panels of the given width, 6 rows or a tile's columns. Element
// (p + r, l) goes to dst[p·k + l·width + r]. Missing elements of the last panel are 0.
func pack[T Float](kern *simd.Kernels[T], dst []T, o operand[T], m, k, width int) {
	for p := 0; p < m; p += width {
		packPanel(kern, dst[p*k:][:width*k], o.from(p, 0), min(width, m-p), k, width)
	}
}

// packPanel packs h ≤ width rows.
func packPanel[T Float](kern *simd.Kernels[T], dst []T, o operand[T], h, k, width int) {
	switch {
	case k == 0:
		return
	case h < width:
		clear(dst)
		for r := range h {
			for l := range k {
				dst[l*width+r] = o.data[r*o.rs+l*o.cs]
			}
		}
	case o.rs == 1:
		copyPanel(kern, dst, o.data, k, width, o.cs)
	default:
		n := k / 4
		for r := 0; n > 0 && r < width; r += 4 {
			r := min(r, width-4) // the last four overlap if width is 6
			kern.Transpose(&dst[r], width, &o.data[r*o.rs], o.rs, n)
		}
		for l := 4 * n; l < k; l++ {
			for r := range width {
				dst[l*width+r] = o.data[r*o.rs+l]
			}
		}
	}
}

// copyPanel copies k runs of width elements that are step apart.
func copyPanel[T Float](kern *simd.Kernels[T], dst, src []T, k, width, step int) {
	if width == simd.Columns[T]() {
		_ = src[(k-1)*step+width-1]
		kern.Pieces(&dst[0], width, &src[0], step, k)
		return
	}
	for l := range k {
		*(*[6]T)(dst[l*6:]) = [6]T(src[l*step:])
	}
}
