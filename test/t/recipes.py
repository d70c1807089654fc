"""The SQL of a document, for tests that run it with other data than documentation.t."""

import re
from pathlib import Path

DOC = Path(__file__).resolve().parents[2] / "doc"


def block(document, *parts):
    """The one block of SQL that has all these parts, without BEGIN and COMMIT."""
    blocks = re.findall(r"^```sql\n(.*?)^```", (DOC / document).read_text(), re.M | re.S)
    (found,) = [sql for sql in blocks if all(part in sql for part in parts)]
    return re.sub(r"^(BEGIN|COMMIT);\n", "", found, flags=re.M)
