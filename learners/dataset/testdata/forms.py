"""Writes forms/, small files as pandas, DuckDB, R and spreadsheets write them, and forms.json with what
pandas or DuckDB read from each, or what the refusal must name. Run in this folder with pandas and duckdb.

R is not needed: its two forms are written as write.csv2 and write.table document them.
"""

import json
import pathlib

import duckdb
import pandas as pd

out = pathlib.Path("forms")
out.mkdir(exist_ok=True)
expected = {}

homes = pd.DataFrame(
    {
        "id": [1, 2, 3, 4, 5, 6],
        "city": ["Köln", "Rom", "Köln", "Bad Ems", "Rom", "Rom"],
        "area": [50.5, 61.25, None, 80.0, 1e-3, -7.0],
        "sold": pd.to_datetime(["2025-12-31", "2024-02-29", "2024-01-01", "2023-06-30", "1969-12-31", "2000-01-01"]),
        "lift": [True, False, True, True, False, False],
        "price": [6776.88, 12.5, 1234567.0, 0.1, 3.0, 8.0],
    }
)


def record(name, frame, times=()):
    """The columns of a frame, with their kind and cells. Times are seconds, missing cells null."""
    columns = []
    for key in frame.columns:
        cells = frame[key]
        if key in times:
            cells = pd.to_datetime(cells, format=times[key], utc=True)
        if pd.api.types.is_bool_dtype(cells):
            kind, values = "boolean", [float(v) for v in cells]
        elif pd.api.types.is_datetime64_any_dtype(cells):
            kind = "time"
            zero = pd.Timestamp(0, tz=cells.dt.tz)
            values = [None if pd.isna(v) else (v - zero).total_seconds() for v in cells]
        elif pd.api.types.is_numeric_dtype(cells):
            kind, values = "numeric", [None if pd.isna(v) else float(v) for v in cells]
        else:
            kind, values = "categorical", [None if pd.isna(v) else str(v) for v in cells]
        columns.append({"name": str(key), "kind": kind, "cells": values})
    expected[name] = {"columns": columns}


def text(name, content, encoding="utf-8"):
    (out / name).write_bytes(content.encode(encoding))


def read(name, content=None, times=(), encoding="utf-8", rename=None, **how):
    """Writes a text and records what pandas reads."""
    if content is not None:
        text(name, content, encoding)
    frame = pd.read_csv(out / name, encoding=encoding, **how)
    record(name, frame.rename(columns=rename or {}), times)


def refused(name, content, *words, encoding="utf-8"):
    text(name, content, encoding)
    expected[name] = {"refused": list(words)}


day = {"sold": "%Y-%m-%d"}

# As pandas writes.
homes.to_csv(out / "pandas.csv", index=False)
read("pandas.csv", times=day)
homes.to_csv(out / "pandas_index.csv")
read("pandas_index.csv", times=day, rename={"Unnamed: 0": "column 1"})
homes.to_csv(out / "pandas_comma.csv", index=False, sep=";", decimal=",")
read("pandas_comma.csv", times=day, sep=";", decimal=",")
homes.to_csv(out / "pandas_tab.tsv", index=False, sep="\t", na_rep="NaN")
read("pandas_tab.tsv", times=day, sep="\t")
homes.to_csv(out / "pandas_utf16.csv", index=False, encoding="utf-16")
read("pandas_utf16.csv", times=day, encoding="utf-16")
homes.to_csv(out / "pandas_bom.csv", index=False, encoding="utf-8-sig", lineterminator="\r\n")
read("pandas_bom.csv", times=day, encoding="utf-8-sig")
homes.to_csv(out / "pandas_gzip.csv.gz", index=False, compression={"method": "gzip", "mtime": 1})
read("pandas_gzip.csv.gz", times=day)
homes.to_json(out / "pandas.json", orient="records", date_format="iso")
record("pandas.json", homes)
homes.to_json(out / "pandas.jsonl", orient="records", lines=True, date_format="iso")
record("pandas.jsonl", homes)
homes.to_csv(out / "pandas_latin1.csv", index=False, encoding="latin-1")
expected["pandas_latin1.csv"] = {"refused": ["row 1 (line 2)", '"city"', "is not UTF-8", "iconv -f latin1 -t utf-8"]}

# As DuckDB writes, read by DuckDB.
duckdb.sql("create table homes as select * from homes")
for name, how in {
    "duckdb.csv": "",
    "duckdb_bar.csv": "(delimiter '|', force_quote *, nullstr 'NULL')",
    "duckdb.parquet": "(format parquet)",
    "duckdb.json": "(format json, array true)",
    "duckdb.jsonl": "(format json)",
}.items():
    duckdb.sql(f"copy homes to '{out / name}' {how}")
    options = ", nullstr='NULL'" if name == "duckdb_bar.csv" else ""
    source = f"read_csv('{out / name}'{options})" if name.endswith(".csv") else f"'{out / name}'"
    record(name, duckdb.sql(f"select * from {source}").df())

# As R writes: write.csv2 with and without names of rows, write.table.
read("r_csv2.csv", '"city";"area";"price"\n"Köln";50,5;6776,88\n"Rom";NA;12\n"a ""b""; c";-1,5e-3;3,25\n', sep=";", decimal=",")
read(
    "r_csv2_rows.csv",
    '"";"city";"area"\n"1";"Rom";50,5\n"2";NA;12,25\n"3";"Rom";1\n',
    sep=";",
    decimal=",",
    rename={"Unnamed: 0": "column 1"},
)
read("r_table_plain.txt", '"city" "area"\n"Bad Ems" 50.5\n"Ulm" 12.25\n', sep=" ")
read("dates.csv", "city,sold\nRom,2024-01-31\nUlm,2025-12-01\n", times={"sold": "%Y-%m-%d"})
read("flags.csv", "city,lift\nRom,true\nUlm,false\n")
refused("r_table.txt", '"city" "area"\n"1" "Rom" 50.5\n"2" "Ulm" 12.25\n', "line 2", "3 fields", "names of rows")

# As spreadsheets export.
read(
    "excel_german.csv",
    "Stadt;Fläche;verkauft;Preis\r\nKöln;50,5;31.12.2025;6776,88\r\nRom;;01.02.2024;12\r\nUlm;7;29.02.2024;3,5\r\n",
    encoding="utf-8-sig",
    sep=";",
    decimal=",",
    times={"verkauft": "%d.%m.%Y"},
)
read("excel_utf16_tab.txt", "city\tarea\r\nKöln\t50.5\r\nRom\t12\r\n", encoding="utf-16", sep="\t")
read("excel_sep.csv", "sep=;\r\ncity;area\r\nRom;50,5\r\nUlm;12,25\r\n", sep=";", decimal=",", skiprows=1)
read("excel_us.csv", "city,sold,price\r\nRom,12/31/2025,1.5\r\nUlm,1/2/2024,2\r\n", times={"sold": "%m/%d/%Y"})
read("quoted_newline.csv", 'city,note,price\nRom,"two\nlines, ""quoted""",1.5\nUlm,plain,2\n')
read("na_words.csv", "a,b,price\nNA,x,1\nn/a,N/A,2\n3.5,#N/A,3\nnull,z,4\n<NA>,x,5\n-1,x,6\n")
read("blank_lines.csv", "a,price\n1,2\n\n3,4\n\n")
read("spaces.csv", "city, area, price\nRom, 1.5, 2\nUlm, -3, 4\n", skipinitialspace=True)
read("yes_no.csv", "lift,price\nyes,1\nno,2\nyes,3\n")
read("zero_one_words.csv", "lift,price\nTRUE,1\nFALSE,2\nTRUE,3\n")
read("trailing_comma.csv", "a,price,\n1,2,\n3,4,\n", rename={"Unnamed: 2": "column 3"})
read("years.csv", "2019,2020,2021\n1.5,2,3\n4,5,6\n7,8,9\n", header=None, rename={0: "column 1", 1: "column 2", 2: "column 3"})
read("exponents.csv", "a;b\n1,5e3;2\n-2,5E-4;3\n", sep=";", decimal=",")

number = "write numbers with a decimal point"
refused("thousands.csv", 'city,price\nRom,"6,776.88"\nUlm,"1,000.00"\n', "line 2", '"price"', '"6,776.88"', number)
refused("thousands_point.csv", "city;price\nRom;6.776,88\nUlm;1.000,00\n", "line 2", '"price"', '"6.776,88"', number)
refused("thousands_swiss.csv", "city,price\nRom,6'776.88\nUlm,1'000.00\n", "line 2", '"price"', number)
refused("currency.csv", "city,price\nRom,$6776.88\nUlm,$3.50\n", "line 2", '"price"', '"$6776.88"', number)
refused("currency_euro.csv", "city;price\nRom;6776,88 €\nUlm;3,50 €\n", "line 2", '"price"', '"6776,88 €"', number)
refused("thousands_comma.csv", "city;price\nRom;970\nUlm;1,067\nUlm;1,164\n", "row 2 (line 3)", '"price"', "could be 1.067", "or 1067", "without commas")
refused("minus_behind.csv", "city,price\nRom,1058.96-\nUlm,12.50-\n", "line 2", '"price"', '"1058.96-"', number)
refused("percent.csv", "city,share,price\nRom,12.5%,1\nUlm,3%,2\n", "line 2", '"share"', '"12.5%"', number)
refused("parentheses.csv", "city,price\nRom,(1234.50)\nUlm,2\n", "line 2", '"price"', number)
refused("total.csv", "id,price\n1,2.5\n2,3\nTotal,5.5\n", "line 4", '"id"', '"Total"', "remove the row if it sums up the others")
refused("total_label.csv", "city,price\nRom,2.5\nUlm,3\nTotal,5.5\n", "row 3 (line 4)", '"city"', '"Total"', "sums up the others; remove it")
refused("pandas_columns.json", homes[["id", "area"]].to_json(), '"id"', "line 1", 'to_json(orient="records")')
refused("windows.csv", "city,price\nK\u00f6ln,3\n\u201eRom\u201c,2\n", "row 1 (line 2)", '"city"', "iconv -f windows-1252 -t utf-8", encoding="cp1252")
refused("utf32.csv", "city,price\nRom,2\n", "UTF-32", "iconv -f utf-32 -t utf-8", encoding="utf-32")
refused("mixed_decimals.csv", 'city,price\nRom,1.5\nUlm,"2,5"\n', "line 3", '"price"', '"2,5"')
refused("short_row.csv", "a,b,price\n1,2,3\n4,5\n", "line 3", "2 fields", "3")
refused("long_row.csv", "a,b,price\n1,2,3\n4,5,6,7\n", "line 3", "4 fields", "3")
refused("twice.csv", "a,a,price\n1,2,3\n4,5,6\n", '"a"', "columns 1 and 2", "correct the first line")
refused("title.csv", "Prices of 2025,,\n,,\ncity,area,price\nRom,1,2\nUlm,3,4\n", "line")
read("texts.csv", "weather,wind,play\nsunny,no,yes\nrain,yes,no\nsunny,yes,yes\n")
read("trailing_semicolon.csv", "a;b;\n1,5;2;\n3;4;\n", sep=";", decimal=",", rename={"Unnamed: 2": "column 3"})
refused("thousands_space.csv", "city;price\nRom;1 234,5\nUlm;567\n", "line 2", '"price"', number)
refused("currency_code.csv", "city;price\nRom;12,50 EUR\nUlm;3 EUR\n", "line 2", '"price"', '"12,50 EUR"', number)
refused("minus.csv", "a,price\n\u22121.5,2\n3,4\n", "line 2", '"a"', number)
refused("comment.csv", "# made by hand\na,b\n1,2\n3,4\n", "line 2", "remove titles and comments above the header")
refused("latin1_header.csv", "Stra\u00dfe,Preis\nA,1\nB,2\n", "column 1", "iconv -f latin1 -t utf-8", encoding="latin-1")
refused("utf16_plain.csv", "a,b\n1,2\n", "byte 1", "iconv -f utf-16le -t utf-8", encoding="utf-16-le")
refused("page.csv", "<!DOCTYPE html>\n<html><body>Sign in</body></html>\n", "a page of HTML; download the file behind it")
(out / "homes.xlsx").unlink(missing_ok=True)
homes.to_excel(out / "homes.xlsx", index=False)
expected["homes.xlsx"] = {"refused": ["xlsx", "CSV"]}

pathlib.Path("forms.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")
print(len(expected), "files")
