"""Extract the Khan tumour table from the ISLP wheel into the package.

    pip download --no-deps ISLP==0.6.0
    python scripts/extract_khan.py ISLP-0.6.0-py3-none-any.whl

Writes src/upheld/hubs/khan.csv.xz: columns sample, subtype, G0001..G2308; 63 training samples, then 20 test samples.
Values are the source's decimal strings, unrounded.
"""

from __future__ import annotations

import csv
import io
import lzma
import sys
import zipfile
from pathlib import Path

# The source numbers its classes 1..4. Their sizes (training 8, 23, 12, 20; test 3, 6, 6, 5) identify them with the
# classes of Khan et al. (2001): Burkitt lymphoma, Ewing sarcoma, neuroblastoma, rhabdomyosarcoma.
SUBTYPES = {"1": "BL", "2": "EWS", "3": "NB", "4": "RMS"}
TARGET = Path(__file__).parents[1] / "src" / "upheld" / "hubs" / "khan.csv.xz"


def rows(wheel: zipfile.ZipFile, member: str) -> list[list[str]]:
    text = wheel.read(f"ISLP/data/{member}.csv").decode("utf-8")
    return list(csv.reader(io.StringIO(text)))[1:]


def main(wheel_path: str) -> None:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    with zipfile.ZipFile(wheel_path) as wheel:
        for part in ("train", "test"):
            expression = rows(wheel, f"Khan_x{part}")
            labels = rows(wheel, f"Khan_y{part}")
            if part == "train":
                writer.writerow(["sample", "subtype", *(f"G{j:04d}" for j in range(1, len(expression[0]) + 1))])
            for i, (values, label) in enumerate(zip(expression, labels, strict=True), start=1):
                writer.writerow([f"{part}{i:02d}", SUBTYPES[label[0]], *values])
    compressed = lzma.compress(table.getvalue().encode(), preset=9 | lzma.PRESET_EXTREME)
    TARGET.write_bytes(compressed)
    print(f"{TARGET}: {len(compressed):,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
