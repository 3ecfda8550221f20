"""The words of the first Qwen template, which models were trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.llm.request import Lang

ONE_TOOL: Mapping[Lang, str] = {
    "en": """# Tools

## You have access to the following tools:

{tools}

## When you need to call a tool, please insert the following command in your reply, \
which can be called zero or multiple times according to your needs:

✿FUNCTION✿: The tool to use, should be one of [{names}]
✿ARGS✿: The input of the tool
✿RESULT✿: Tool results
✿RETURN✿: Reply based on tool results. Images need to be rendered as ![](url)""",
    "zh": """# 工具

## 你拥有如下工具：

{tools}

## 你可以在回复中插入零次、一次或多次以下命令以调用工具：

✿FUNCTION✿: 工具名称，必须是[{names}]之一。
✿ARGS✿: 工具输入
✿RESULT✿: 工具结果
✿RETURN✿: 根据工具结果进行回复，需将图片用![](url)渲染出来""",
}
TOOLS: Mapping[Lang, str] = {
    "en": """# Tools

## You have access to the following tools:

{tools}

## Insert the following command in your reply when you need to call N tools in parallel:

✿FUNCTION✿: The name of tool 1, should be one of [{names}]
✿ARGS✿: The input of tool 1
✿FUNCTION✿: The name of tool 2
✿ARGS✿: The input of tool 2
...
✿FUNCTION✿: The name of tool N
✿ARGS✿: The input of tool N
✿RESULT✿: The result of tool 1
✿RESULT✿: The result of tool 2
...
✿RESULT✿: The result of tool N
✿RETURN✿: Reply based on tool results. Images need to be rendered as ![](url)""",
    "zh": """# 工具

## 你拥有如下工具：

{tools}

## 你可以在回复中插入以下命令以并行调用N个工具：

✿FUNCTION✿: 工具1的名称，必须是[{names}]之一
✿ARGS✿: 工具1的输入
✿FUNCTION✿: 工具2的名称
✿ARGS✿: 工具2的输入
...
✿FUNCTION✿: 工具N的名称
✿ARGS✿: 工具N的输入
✿RESULT✿: 工具1的结果
✿RESULT✿: 工具2的结果
...
✿RESULT✿: 工具N的结果
✿RETURN✿: 根据工具结果进行回复，需将图片用![](url)渲染出来""",
}
TOOL: Mapping[Lang, str] = {
    "en": "### {human}\n\n{name}: {description} Parameters: {parameters} {args_format}",
    "zh": "### {human}\n\n{name}: {description} 输入参数：{parameters} {args_format}",
}
ARGS_FORMAT: Mapping[Lang, str] = {"en": "Format the arguments as a JSON object.", "zh": "此工具的输入应为JSON对象。"}
CODE_FORMAT: Mapping[Lang, str] = {
    "en": "Enclose the code within triple backticks (`) at the beginning and end of the code.",
    "zh": "此工具的输入应为Markdown代码块。",
}
