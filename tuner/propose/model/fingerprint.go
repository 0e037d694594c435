package model

import (
	"encoding/binary"
	"hash/fnv"
	"math"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Fingerprint is a hash of c, the same on every machine. Two configurations with the same
// fingerprint count as the same. Among 10⁵ there are two such with probability 3e-10.
func Fingerprint(c space.Config) uint64 {
	h := fnv.New64a()
	var word [9]byte
	for name, v := range c.All() {
		h.Write(binary.AppendUvarint(word[:0], uint64(len(name))))
		h.Write([]byte(name))
		word[0] = byte(v.Kind())
		if text, ok := v.AsString(); ok {
			binary.LittleEndian.PutUint64(word[1:], uint64(len(text)))
			h.Write(word[:])
			h.Write([]byte(text))
			continue
		}
		binary.LittleEndian.PutUint64(word[1:], wordOf(v))
		h.Write(word[:])
	}
	return h.Sum64()
}

// wordOf returns the bits of a value that is not a string.
func wordOf(v space.Value) uint64 {
	if x, ok := v.AsFloat(); ok {
		return math.Float64bits(x)
	}
	if n, ok := v.AsInt(); ok {
		return uint64(n)
	}
	if b, _ := v.AsBool(); b {
		return 1
	}
	return 0
}
