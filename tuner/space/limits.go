package space

import "math"

// These limits of a space bound memory and time per input, and are far above the needs of
// people. Beyond each, creation fails with an error.
const (
	MaxParameters     = 1_000   // parameters in one space
	MaxNameBytes      = 128     // bytes of UTF-8 in a parameter's name
	MaxValues         = 10_000  // values of one ordinal or categorical, or of one condition
	MaxTextBytes      = 4 << 10 // bytes in one string value, or in one number as written
	MaxConditionDepth = 16      // parents above a parameter, counted upwards
	MaxFileBytes      = 1 << 20 // bytes of a space file or of one configuration's JSON
	MaxFileDepth      = 32      // nested mappings and lists
	MaxFileItems      = 100_000 // values, keys and list items in one file
	MaxYAMLMarks      = 25_000  // characters `, : [ { ? -` and line ends in a YAML file, each up to 2 kB in its reader
	MaxGridPoints     = 1e15    // points of a stepped float, because more are not distinct in [0, 1]
	maxCellsLinear    = 1e15    // cells of an int before neighbours share one
	maxExactLogInt    = 1e12    // ints on a log scale up to here have a cell each
	maxFaults         = 50      // faults reported at once, further ones are only counted
	maxShownBytes     = 60      // bytes of a value quoted in a message
	maxCountingSteps  = 1 << 22 // members that Cardinality visits at most
	belowOne          = 1 - 0x1p-53
	tiny              = math.SmallestNonzeroFloat64
)
