package data

// splitGolden are the parts of 12 rows for seed 42 and shares ½, ¼, ¼.
const splitGolden = "[[4 5 6 7 8 11] [0 1 2] [3 9 10]] <nil>"
