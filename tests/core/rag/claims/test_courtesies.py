"""Greetings, thanks and closings are not claims; a sentence that says something beside them is one."""

from __future__ import annotations

import time

import pytest

from core.rag.claims.check import check_claims
from core.rag.claims.courtesies import is_courtesy

COURTESIES = """
谢谢配合！
感谢您的理解与支持！
衷心感谢大家一直以来对我们工作的支持与配合。
非常感谢！
祝您生活愉快！
顺祝商祺！
敬请谅解。
请大家互相理解。
尊敬的各位业主：
各位邻居好！
您好！
此致敬礼！
特此通知。
如有任何疑问，请随时与我们联系。
希望以上内容对您有所帮助。
给您带来不便，敬请谅解。
Thank you!
Many thanks in advance.
Thank you very much for your cooperation and understanding.
We would like to thank you for your patience.
Dear neighbours,
Dear Ms. Smith,
Good morning everyone!
Hello there!
Kind regards,
Best wishes, Anna Berg
Yours sincerely,
I hope this helps!
If you have any further questions, please feel free to contact us.
Please let me know if you need anything else.
Let me know if you need anything.
Have a great day!
We apologise for any inconvenience.
You're welcome!
""".strip().splitlines()
CLAIMS = """
感谢您在三月份支付了全部押金。
谢谢配合，水阀将在周二关闭。
祝贺公司去年利润翻番。
如有疑问，请致电 555 0134。
您好，会议改到周五。
请大家在周五之前把自行车搬走。
尊敬的客户不得退款。
亲爱的住户请于周五搬走自行车。
希望以上条款在五月生效。
Thank you for paying the deposit in March.
Thanks to the new valve the pressure fell.
Dear customers pay the fee twice a year in cash.
Good morning hours are from eight to noon.
If you have any questions, call Mrs Berg at the harbour office.
Have the boiler checked by a plumber.
The best wishes come from Oslo and are read aloud.
Hello Kitty costs nothing on Sundays in spring.
We apologise for the flood of the cellar.
""".strip().splitlines()


@pytest.mark.parametrize("sentence", COURTESIES)
def test_a_courtesy_is_no_claim(sentence: str) -> None:
    assert is_courtesy(sentence)
    passages = ["The water is shut off on Tuesday, from nine to twelve.", "周二九点到十二点停水，请提前储水。"]
    assert check_claims(sentence, passages) == []


@pytest.mark.parametrize("sentence", CLAIMS)
def test_what_says_something_beside_it_is_a_claim(sentence: str) -> None:
    assert not is_courtesy(sentence)


def test_whatever_is_written_it_is_known_in_no_time() -> None:
    begun = time.process_time()
    words = (
        "感谢" + "的" * 118,
        "谢谢" + "与和及、" * 29 + "x",
        "我们您们" * 5 + "x",
        "非常我们" * 5 + "x",
        "您" * 20 + "x",
    )
    for text in ("thank you for your " * 7, "dear " + "a " * 57, "dear " + "a" * 114 + "!", *words):
        is_courtesy(text)
    assert time.process_time() - begun < 2
