"""English for what documents say to an answer; part of `en.py`."""

from __future__ import annotations

CLAIMS: dict[str, str] = {
    "claims.weak": "The documents hardly bear this out. Search again for it.",
    "claims.unsupported": "The documents do not say this. Search again for it.",
    "claims.weak_web": "What was found on the web hardly bears this out.",
    "claims.unsupported_web": "What was found on the web does not say this.",
    "claims.all_web": "Every sentence stands in what was found on the web",
    "claims.some_web": "{n} of {total} sentences stand in what was found on the web; short ones are not checked",
    "claims.all": "Every sentence stands in the documents",
    "claims.some": "{n} of {total} sentences stand in the documents; short ones are not checked",
    "claims.again": "Searched again for: {claim}",
    "error.claim_not_found": "Nothing like it stands in the documents",
    "error.claim_not_found.do": "Ask in other words, or add the document that says so.",
}
