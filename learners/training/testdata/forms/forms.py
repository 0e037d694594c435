"""Writes one data set in eight forms: CSV in three dialects, TSV, Parquet by three writers, and npy."""

import csv
import datetime as dt
import math
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

n = 60
x = [round(math.sin(i * 1.7) * 3, 4) for i in range(n)]
count = [(i * 7) % 23 - 5 for i in range(n)]
price = [Decimal(10_000 + 37 * i * i % 9_000) / 10_000 for i in range(n)]
ok = [i % 3 == 0 for i in range(n)]
day = [dt.date(2024, 1, 20) + dt.timedelta(days=(i * 11) % 90) for i in range(n)]
when = [dt.datetime(2023, 12, 31, 23, 0, 0) + dt.timedelta(minutes=37 * i, seconds=i) for i in range(n)]
y = [round(a + 0.1 * c + float(p) + o + d.day / 31 + t.hour / 24, 6) for a, c, p, o, d, t in zip(x, count, price, ok, day, when)]

names = ["x", "count", "price", "ok", "day", "when", "y"]
frame = pd.DataFrame({
    "x": x, "count": count, "price": [float(p) for p in price], "ok": ok, "day": pd.to_datetime(day), "when": when, "y": y,
})
frame.to_csv("pandas.csv", index=False)
frame.to_parquet("pandas.parquet", index=False, compression=None)

# As R's write.csv2 and spreadsheets in Germany write it.
with open("semicolons.csv", "w", newline="", encoding="utf-16") as f:
    w = csv.writer(f, delimiter=";", lineterminator="\r\n")
    w.writerow(names)
    for a, c, p, o, d, t, b in zip(x, count, price, ok, day, when, y):
        number = lambda v: str(v).replace(".", ",")
        w.writerow([number(a), c, number(p), str(o).upper(), d.strftime("%d.%m.%Y"), t.strftime("%d.%m.%Y %H:%M:%S"), number(b)])

# As spreadsheets in the United States write it, with the columns in another order.
with open("quoted.csv", "w", newline="") as f:
    w = csv.writer(f, delimiter="|", quoting=csv.QUOTE_ALL, lineterminator="\r")
    w.writerow(["when", "y", *names[:5]])
    for a, c, p, o, d, t, b in zip(x, count, price, ok, day, when, y):
        w.writerow([t.strftime("%m/%d/%Y %I:%M:%S %p"), b, f"{a:e}" if a else 0, c, p, str(o).lower(), d.strftime("%m/%d/%Y")])

decimals = pa.table({
    "x": pa.array([Decimal(str(v)) for v in x], pa.decimal128(9, 4)),
    "count": pa.array(count, pa.int8()),
    "price": pa.array(price, pa.decimal128(18, 4)),
    "ok": pa.array(ok),
    "day": pa.array(day, pa.date32()),
    "when": pa.array(when, pa.timestamp("ms", tz="UTC")),
    "y": pa.array([Decimal(str(v)) for v in y], pa.decimal128(30, 6)),
})
pq.write_table(decimals, "decimals.parquet", store_decimal_as_integer=True)

db = duckdb.connect()
db.register("frame", frame)
db.execute('create table t as select x, count::smallint as count, price::decimal(9,4) as price, ok, day::date as day, "when"::timestamp_s as "when", y from frame')
db.execute("copy t to 'duckdb.parquet' (format parquet)")
db.execute("copy t to 'duckdb.tsv' (format csv, delimiter '\\t', header)")

seconds = lambda t: (t - dt.datetime(1970, 1, 1)).total_seconds()
midnight = dt.time()
np.save("numbers.npy", np.array([
    [a, c, float(p), o, seconds(dt.datetime.combine(d, midnight)), seconds(t), b]
    for a, c, p, o, d, t, b in zip(x, count, price, ok, day, when, y)
]))
