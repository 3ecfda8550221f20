"""A sentence joined of a question and a passage, with another condition, sort of days or author, is told."""

from __future__ import annotations

import pytest

from core.rag.claims.asked import is_yes_or_no
from core.rag.claims.check import check_claims

RADIUM = "Marie Curie discovered radium and polonium with Pierre Curie. She received the Nobel Prize in 1903."
STORM = "Damage by fire and storm is covered by the insurance. The deductible is 300 dollars."
PARKING = "Visitors may park at the gate for two hours."
HAN_RADIUM = "居里夫人与皮埃尔·居里一起发现了镭和钋。她在1903年获得诺贝尔奖。"
HAN_STORM = "火灾和暴风造成的损失由保险赔付。免赔额为500元。"


def verdict(sentence: str, text: str, asked: str = "") -> str:
    (claim,) = check_claims(sentence, [text], asked)
    return claim.verdict


@pytest.mark.parametrize(
    ("asked", "text", "sentence"),
    [
        ("What did Marie Curie discover in Paris?", RADIUM, "Marie Curie discovered radium in Paris."),
        ("What did Marie Curie discover in Paris?", RADIUM, "Marie Curie discovered Paris."),
        ("Did Marie Curie discover penicillin?", RADIUM, "Yes, Marie Curie discovered penicillin with Pierre Curie."),
        ("Did Marie Curie discover penicillin?", RADIUM, "Marie Curie discovered penicillin."),
        ("Does the insurance cover earthquakes?", STORM, "The insurance covers damage by earthquakes."),
        ("How long may I park at the museum?", PARKING, "Visitors may park at the museum for two hours."),
        ("居里夫人在巴黎发现了什么？", HAN_RADIUM, "居里夫人在巴黎发现了镭。"),
        ("居里夫人发现了青霉素吗？", HAN_RADIUM, "居里夫人发现了青霉素。"),
        ("保险赔付地震损失吗？", HAN_STORM, "地震造成的损失由保险赔付。"),
    ],
)
def test_a_word_that_only_the_question_has_bears_nothing_out(asked: str, text: str, sentence: str) -> None:
    assert verdict(sentence, text, asked) != "supported"


@pytest.mark.parametrize(
    ("asked", "text", "sentence"),
    [
        ("What did Marie Curie discover in Paris?", RADIUM, "Marie Curie discovered radium and polonium."),
        ("How much is the deductible that I have to pay?", STORM, "The deductible is 300 dollars."),
        ("Is storm damage covered?", STORM, "Yes, damage by storm is covered by the insurance."),
        ("How long may I park at the gate?", PARKING, "You may park at the gate for two hours."),
        (
            "Can you tell me how long visitors with a car may park?",
            PARKING,
            "Visitors with a car may park at the gate for two hours.",
        ),
        ("保险赔付火灾损失吗？", HAN_STORM, "火灾造成的损失由保险赔付。"),
    ],
)
def test_what_a_passage_has_is_supported_although_the_question_has_it_too(asked: str, text: str, sentence: str) -> None:
    assert verdict(sentence, text, asked) == "supported"


@pytest.mark.parametrize(
    ("question", "puts_forward"),
    [
        ("Does it cover fire?", True),
        ("Is it 5 or 6?", False),
        ("What does it cover?", False),
        ("保险赔付吗？", True),
        ("是否赔付？", True),
        ("这是什么？", False),
        ("为什么", False),
        ("Can you tell me when the warranty ends?", False),
        ("Could you please summarise the report?", False),
        ("Do you know who wrote it?", False),
        ("Could you tell me whether fire is covered?", True),
        ("Do you know if it covers fire?", True),
        ("Can you park there?", True),
        ("你能告诉我这是什么吗？", False),
        ("能否说明保修期有多长？", False),
        ("请问您知道是谁写的吗？", False),
        ("你能告诉我是否赔付吗？", True),
        ("能赔付吗？", True),
        ("说明书里有保修期吗？", True),
        ("", False),
    ],
)
def test_a_question_that_puts_a_sentence_forward_is_told_from_one_that_asks_what(
    question: str, puts_forward: bool
) -> None:
    assert is_yes_or_no(question) is puts_forward


OTHERWISE = [
    ("We refund within 14 days after the return.", "We refund within 14 working days after the return.", "amount"),
    ("We refund within ten business days.", "We refund within 10 days.", "amount"),
    ("We refund within 14 working days.", "We refund within 14 calendar days.", "amount"),
    ("我们在收到退货后14天内退款。", "我们在收到退货后14个工作日内退款。", "amount"),
    ("我们在收到退货后14日内退款。", "我们在收到退货后十四个工作日内退款。", "amount"),
    ("我们在收到退货后14个工作日内退款。", "我们在收到退货后14个自然日内退款。", "amount"),
    ("The fee is refunded unless the customer cancels.", "The fee is refunded if the customer cancels.", "condition"),
    ("The fee is refunded if the customer cancels.", "The fee is refunded unless the customer cancels.", "condition"),
    ("The fee is due only if the customer cancels.", "The fee is due even if the customer cancels.", "condition"),
    ("Theft is not covered unless the door was locked.", "Theft is not covered if the door was locked.", "condition"),
    ("The owner may end the lease with notice.", "The owner may end the lease without notice.", "condition"),
    ("The owner may end the lease without notice.", "The owner may end the lease with notice.", "condition"),
    ("The owner may not enter without notice.", "The owner may enter without notice.", "denial"),
    ("除非客户取消，费用将予以退还。", "如果客户取消，费用将予以退还。", "condition"),
    ("如果客户取消，费用将予以退还。", "除非客户取消，费用将予以退还。", "condition"),
    ("仅在客户书面取消时，费用才予以退还。", "即使客户书面取消，费用也予以退还。", "condition"),
    ("除非门已上锁，否则盗窃不予赔偿。", "如果门已上锁，盗窃不予赔偿。", "condition"),
    (
        "The report on rivers was written by Anna Miller. The maps were drawn by Bob Stone.",
        "Bob Stone is the author of the report.",
        "name",
    ),
    (
        "Jane Austen wrote Emma in 1815, and Charlotte Bronte wrote Jane Eyre in 1847.",
        "Emma was written by Charlotte Bronte.",
        "name",
    ),
    (
        "The contract was signed by Paul Novak for the buyer, and by Eva Lang for the seller.",
        "Eva Lang signed for the buyer.",
        "name",
    ),
    ("《河流报告》由张伟撰写。地图由李娜绘制。", "《河流报告》由李娜撰写。", "name"),
    ("《红楼梦》的作者是曹雪芹，《西游记》的作者是吴承恩。", "《红楼梦》的作者是吴承恩。", "name"),
    ("曹雪芹写了《红楼梦》，吴承恩写了《西游记》。", "吴承恩写了《红楼梦》。", "name"),
]


@pytest.mark.parametrize(("text", "sentence", "kind"), OTHERWISE)
def test_what_is_said_otherwise_is_told_with_its_kind(text: str, sentence: str, kind: str) -> None:
    (claim,) = check_claims(sentence, [text])
    assert claim.verdict == "unsupported"
    assert claim.reasons[0].kind == kind
    assert claim.reasons[0].rival or kind == "amount"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("We refund within 14 working days.", "You are refunded within 14 business days."),
        ("We refund within 14 days.", "You are refunded within 14 calendar days."),
        ("我们在收到退货后14日内退款。", "我们在收到退货后14天内退款。"),
        ("Theft is not covered unless the door was locked.", "Theft is only covered if the door was locked."),
        ("Theft is covered only if the door was locked.", "Theft is not covered unless the door was locked."),
        ("Theft is covered only if the door was locked.", "Theft is covered if the door was locked."),
        ("Refunds are paid if the ticket is unused.", "Refunds are paid unless the ticket is used."),
        ("The owner may enter only with prior notice.", "The owner may not enter without notice."),
        ("The owner may enter the flat in an emergency without prior notice.", "The owner may enter without notice."),
        ("仅在客户书面取消时，费用才予以退还。", "客户书面取消时，费用予以退还。"),
        ("无需预约即可参观博物馆。", "参观博物馆不用预约。"),
        ("除非门已上锁，否则盗窃不予赔偿。", "如果门已上锁，盗窃予以赔偿。"),
        (
            "The report on rivers was written by Anna Miller. The maps were drawn by Bob Stone.",
            "Bob Stone drew the maps.",
        ),
        ("Jane Austen wrote Emma in 1815, and Charlotte Bronte wrote Jane Eyre.", "Emma is by Jane Austen."),
        ("Bob Stone, who met Anna Miller in Paris, wrote the report.", "Bob Stone wrote the report in Paris."),
        ("Bob Stone studied rivers. With Anna Miller he wrote the report.", "Bob Stone wrote the report."),
        ("《河流报告》由张伟撰写。地图由李娜绘制。", "地图由李娜绘制。"),
    ],
)
def test_what_means_the_same_is_supported(text: str, sentence: str) -> None:
    (claim,) = check_claims(sentence, [text])
    assert (claim.verdict, claim.reasons) == ("supported", ())


def test_a_denial_later_in_a_chinese_sentence_is_none_of_what_need_not_be() -> None:
    said = "守谦四岁时，元璋说你不用恐惧，你的父亲让我担忧"
    (claim,) = check_claims(f"{said}。", [f"{said}，我不会因他的过错而废了你。"])
    assert (claim.verdict, claim.reasons) == ("supported", ())


@pytest.mark.parametrize(
    ("question", "sentence", "text"),
    [
        (
            "谁决定当一个演艺人员？",
            "尚恩决定当一个演艺人员。",
            "尚恩参加音乐剧在剧院所举行的试演，这时他决定要当个演艺人员。",
        ),
        ("北大西洋公约是哪一年签订的？", "北大西洋公约是1949年签订的。", "1949年，各国所签订的北大西洋公约生效。"),
        ("What colour is the sky?", "The sky of the evening is red.", "The sky is red in the evening."),
    ],
)
def test_an_answer_that_repeats_its_question_is_not_held_against_what_stands_beside_other_words(
    question: str, sentence: str, text: str
) -> None:
    assert not any(claim.verdict == "unsupported" for claim in check_claims(sentence, [text], question))
