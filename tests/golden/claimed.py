"""Which replay answers for which recorded function, and how a replay gets its records.

    @pytest.mark.parametrize("record", of("nous.preprocess"), ids=name)
    def test_...(record: Record) -> None: ...

One file answers for all records of a function; `test_claims.py` holds that none is left out and none answered twice.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]

RECORDS = Path(__file__).parent / "records"

CLAIMS: dict[str, tuple[str, ...]] = {
    "test_calling_golden.py": (
        "constants",
        "nous.code_mode.postprocess",
        "nous.code_mode.preprocess",
        "nous.extract_fn",
        "nous.postprocess",
        "nous.postprocess.stream",
        "nous.preprocess",
        "qwen.postprocess",
        "qwen.preprocess",
    ),
    "test_context_golden.py": ("truncate_input_messages",),
    "test_token_golden.py": ("tokenizer.count", "tokenizer.encode", "tokenizer.truncate"),
    "test_message_golden.py": (
        "format_as_multimodal_message",
        "format_as_text_message",
        "get_basename_from_url",
        "oai.convert_messages_to_dicts",
        "remove_fncall_messages",
        "schema",
        "simulate_completion",
        "validate_num_fncall_results",
    ),
    "test_settings_golden.py": (
        "has_chinese_chars",
        "merge_generate_cfgs",
        "postprocess_stop_words",
        "rm_think",
        "truncate_at_stop_word",
    ),
    "test_tool_golden.py": ("is_tool_schema", "json_loads", "verify_json_format_args"),
    "test_search_golden.py": (
        "hybrid_search.call",
        "keyword.parse_keyword",
        "keyword.string_tokenizer",
        "keyword_search.call",
        "keyword_search.sort_by_scores",
    ),
    "test_document_golden.py": (
        "clean_paragraph",
        "format_knowledge",
        "get_file_type",
        "simple_doc_parser(cache)",
        "simple_doc_parser(plain)",
        "simple_doc_parser(structured)",
        "split_doc_to_chunk",
        "str_processing.rm_cid",
        "str_processing.rm_continuous_placeholders",
        "str_processing.rm_hexadecimal",
        "str_processing.rm_newlines",
    ),
    "test_page_golden.py": ("gui.convert_fncall_to_text", "gui.convert_history_to_chatbot"),
    "test_steps_golden.py": ("extract_code", "react.detect_tool"),
    "test_storage_golden.py": ("storage",),
}


@cache
def recorded() -> tuple[Record, ...]:
    """All records of Qwen-Agent."""
    return tuple(json.loads((RECORDS / "qwen_agent_golden.json").read_text(encoding="utf-8"))["records"])


def of(*functions: str) -> list[Record]:
    """The records of these functions, in their order."""
    return [record for record in recorded() if record["fn"] in functions]


def name(record: Record) -> str:
    """What a test over one record is called."""
    return f"{record['fn']}/{record['id']}"[:60]
