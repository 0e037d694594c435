"""Writes types.parquet: a column of each logical type that Arrow writes, with its extremes and a null."""

import datetime as dt
from decimal import Decimal as D

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

utc = dt.timezone.utc
t = [dt.datetime(1969, 12, 31, 23, 59, 59, 250000), dt.datetime(2024, 2, 29, 12, 0, 0, 125000), None]
columns = {
    "u8": pa.array([0, 255, None], pa.uint8()),
    "u16": pa.array([0, 65535, None], pa.uint16()),
    "u32": pa.array([2**31, 2**32 - 1, None], pa.uint32()),
    "u64": pa.array([2**63, 2**64 - 2048, None], pa.uint64()),
    "i8": pa.array([-128, 127, None], pa.int8()),
    "i64": pa.array([-(2**62), 2**62, None], pa.int64()),
    "f16": pa.array(np.array([-0.5, 65504, 6e-8], np.float16), mask=np.array([False, False, True])),
    "f32": pa.array([0.5, -2, None], pa.float32()),
    "dec32": pa.array([D("-1.2345"), D("99999.9999"), None], pa.decimal128(9, 4)),
    "dec64": pa.array([D("-1.2345"), D("0.0001"), None], pa.decimal128(18, 4)),
    "dec128": pa.array([D("-1.25"), D("123456789012345678901234567.5"), None], pa.decimal128(30, 2)),
    "dec256": pa.array([D("-1.25"), D("0.1"), None], pa.decimal256(50, 10)),
    "date": pa.array([dt.date(1969, 12, 31), dt.date(2024, 2, 29), None], pa.date32()),
    "time_ms": pa.array([dt.time(0, 0, 1), dt.time(12, 30, 0, 250000), None], pa.time32("ms")),
    "time_ns": pa.array([dt.time(0, 0, 1), dt.time(12, 30, 0, 250000), None], pa.time64("ns")),
    "ts_ms": pa.array(t, pa.timestamp("ms")),
    "ts_us": pa.array([x and x.replace(tzinfo=utc) for x in t], pa.timestamp("us", tz="UTC")),
    "ts_ns": pa.array(t, pa.timestamp("ns")),
    "bool": pa.array([True, False, None], pa.bool_()),
    "text": pa.array(["a", "b", None], pa.string()),
    "null": pa.array([None, None, None], pa.null()),
}
table = pa.table(columns)
pq.write_table(table, "types.parquet", compression="none", use_dictionary=False, write_statistics=False, store_schema=False, store_decimal_as_integer=True)
old = pa.table({"int96": pa.array(t, pa.timestamp("ns"))})
pq.write_table(old, "int96.parquet", compression="none", use_dictionary=False, write_statistics=False, store_schema=False, use_deprecated_int96_timestamps=True)
