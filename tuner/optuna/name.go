package optuna

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/engine"
)

// Prefix begins the names of Optuna's studies in the store.
const Prefix = engine.ForeignPrefix

// digestBytes of the name's digest are at the end of a derived name, in hexadecimal.
const digestBytes = 8

var (
	digested = regexp.MustCompile(`(^|\.)[0-9a-f]{16}$`)
	unfit    = regexp.MustCompile(`[^a-z0-9_-]+`)
)

// StoreName returns the name in the store of Optuna's study with a name. It is
// optuna.NAME if that is a valid name. Otherwise it ends with a digest of the name, so
// that different studies have different names.
func StoreName(name string) string {
	if plain := Prefix + name; name != "" && store.CheckName(plain) == nil && !digested.MatchString(name) {
		return plain
	}
	words := strings.Trim(unfit.ReplaceAllString(strings.ToLower(name), "-"), "-_")
	if words = strings.TrimRight(words[:min(len(words), 40)], "-_"); words != "" {
		words += "."
	}
	sum := sha256.Sum256([]byte(name))
	return Prefix + words + hex.EncodeToString(sum[:digestBytes])
}
