//go:build !noasm

package simd

import "golang.org/x/sys/cpu"

// machine returns the kernels in assembly that this processor can run.
func machine[T Float]() []*Kernels[T] {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return nil
	}
	if k, ok := any(avx2x32()).(*Kernels[T]); ok {
		return []*Kernels[T]{k}
	}
	return []*Kernels[T]{any(avx2x64()).(*Kernels[T])}
}

func avx2x32() *Kernels[float32] {
	return &Kernels[float32]{
		Path: "avx2",
		Tile: [statistics]func(int, *float32, *float32, *float32, *float32, *float32, int){
			dotF32, squaredF32, manhattanF32, mismatchesF32,
		},
		Fused: [statistics][functions]FusedTile[float32]{
			Dot:     {Decay2: dotDecay2F32, CosTurns: dotCosTurnsF32},
			Squared: {Fall2: squaredFall2F32},
		},
		Func: [functions]func(*float32, int, *float32){
			affineF32, expScaledF32, decay2F32, fall2F32, matern12F32, matern32F32, matern52F32,
			rationalQuadraticF32, powerF32, arcCosineF32, cosTurnsF32, expF32, exp2F32, cosF32,
		},
		Multiply:     multiplyF32,
		MultiplyT:    multiplyTF32,
		MultiplyRows: multiplyRowsF32,
		AddRows:      addRowsF32,
		AddRow:       addRowF32,
		Squares:      squaresF32,
		Gemm:         gemmF32,
		Trsm:         trsmF32,
		Transpose:    transposeF32,
		Pieces:       piecesF32,
		Cholesky:     choleskyF32,
		Drain:        drainF32,
		peak:         peakF32,
	}
}

func avx2x64() *Kernels[float64] {
	return &Kernels[float64]{
		Path: "avx2",
		Tile: [statistics]func(int, *float64, *float64, *float64, *float64, *float64, int){
			dotF64, squaredF64, manhattanF64, mismatchesF64,
		},
		Fused: [statistics][functions]FusedTile[float64]{
			Dot:     {Decay2: dotDecay2F64, CosTurns: dotCosTurnsF64},
			Squared: {Fall2: squaredFall2F64},
		},
		Func: [functions]func(*float64, int, *float64){
			affineF64, expScaledF64, decay2F64, fall2F64, matern12F64, matern32F64, matern52F64,
			rationalQuadraticF64, powerF64, arcCosineF64, cosTurnsF64, expF64, exp2F64, cosF64,
		},
		Multiply:     multiplyF64,
		MultiplyT:    multiplyTF64,
		MultiplyRows: multiplyRowsF64,
		AddRows:      addRowsF64,
		AddRow:       addRowF64,
		Squares:      squaresF64,
		Gemm:         gemmF64,
		Trsm:         trsmF64,
		Transpose:    transposeF64,
		Pieces:       piecesF64,
		Cholesky:     choleskyF64,
		Drain:        drain[float64],
		peak:         peakF64,
	}
}
