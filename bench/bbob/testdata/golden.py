"""Writes coco.csv: values of COCO's suite bbob, for the tests of package bbob.

    pip install coco-experiment numpy && python golden.py > coco.csv
"""

import cocoex

DIMENSIONS, INSTANCES, POINTS = "2,5,10,20", "1-3", 4


def point(p, d):
    """Thousandths, the same in the test; point 3 leaves the box."""
    thousandths = [(7919 * (i + 1) + 1297 * (p + 1) + 31 * (i + 1) ** 2 * (p + 1)) % 10001 for i in range(d)]
    return [(t / 1000 - 5) * (1.25 if p == 3 else 1) for t in thousandths]


suite = cocoex.Suite("bbob", "", f"dimensions: {DIMENSIONS} instance_indices: {INSTANCES}")
print("# coco-experiment", cocoex.__version__)
print("function,dimension,instance,value0,value1,value2,value3")
for problem in suite:
    f, d, i = problem.id_function, problem.dimension, problem.id_instance
    values = [float(problem(point(p, d))) for p in range(POINTS)]
    print(",".join([str(f), str(d), str(i)] + [repr(float(v)) for v in values]))
