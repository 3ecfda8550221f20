"""What a model is told when it is asked for words to search with; in both languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.llm.request import Lang

KEYWORDS: Mapping[Lang, str] = {
    "en": "Somebody will look for the answer to a question in documents, by single words. Write the words to look for: "
    "names, terms, figures and likely synonyms as they may stand in the documents, four to ten, in English and in "
    'Chinese. Answer with JSON alone: {{"words": ["…", "…"]}}\n{known}\nQuestion: {question}',
    "zh": "有人要在文档中按词查找某个问题的答案。请写出应当查找的词：名称、术语、数字，以及文档中可能出现的近义词，"
    '四到十个，中文和英文都要。只回答 JSON：{{"words": ["…", "…"]}}\n{known}\n问题：{question}',
}
SPLIT: Mapping[Lang, str] = {
    "en": "A message to an assistant often says two things: what to look up in the user's documents, and what to do "
    'with it (to write a table, to be brief, to translate). Under "about" repeat only what is to be looked up, in the '
    'message\'s own words; under "words" write four to ten words to look for, in English and in Chinese. Answer with '
    'JSON alone: {{"about": "…", "words": ["…", "…"]}}\n{known}\nMessage: {question}',
    "zh": "给助手的一条消息往往包含两件事：要在用户文档里查什么，以及查到之后怎么做（列成表格、写得简短、翻译等）。"
    "“about” 只写要查的内容，用消息原来的词语；“words” 写四到十个应当查找的词，中文和英文都要。"
    '只回答 JSON：{{"about": "…", "words": ["…", "…"]}}\n{known}\n消息：{question}',
}
KNOWN: Mapping[Lang, str] = {
    "en": "So that you know how the documents put things, here are some lines of them.\n{lines}\n",
    "zh": "为了解文档的用词，下面是其中的几行。\n{lines}\n",
}
REWRITE: Mapping[Lang, str] = {
    "en": "Put the last question so that it can be understood without the ones before it, in its own language, in one "
    "line and without an answer.\n{questions}",
    "zh": "请改写最后一个问题，使人不看前面的问题也能明白。用它原来的语言，只写一行，不要回答。\n{questions}",
}
