"""English for what documents say to an answer; part of `en.py`."""

from __future__ import annotations

CLAIMS: dict[str, str] = {
    "claims.weak": "Only loosely like a passage of the documents. Search again for it.",
    "claims.unsupported": "No passage of the documents was found to resemble this. Search again for it.",
    "claims.weak_web": "Only loosely like what was found on the web.",
    "claims.unsupported_web": "Nothing that was found on the web resembles this.",
    "claims.all_web": "{n} of {total} sentences resemble what was found on the web",
    "claims.some_web": "{n} of {total} sentences resemble what was found on the web; short ones are not checked",
    "claims.all": "{n} of {total} sentences resemble a passage",
    "claims.some": "{n} of {total} sentences resemble a passage; short ones are not checked",
    "claims.again": "Searched again for “{claim}”: these passages resemble it.",
    "claims.closest": "Searched again for “{claim}”: no passage clearly says it. These come closest.",
    "error.claim_not_found": "Nothing like it was found in the documents",
    "error.claim_not_found.do": "Ask in other words, or add the document that says so.",
}
