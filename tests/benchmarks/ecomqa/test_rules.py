"""The judge without a model, on answers graded by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ecomqa_questions import questions

from benchmarks.ecomqa.data import Question
from benchmarks.ecomqa.forms import form_of, options_of, query_of
from benchmarks.ecomqa.normalise import contains, mentioned, normal, same
from benchmarks.ecomqa.rules import rule

RIGHT, WRONG, SILENT, UNCLEAR = "correct", "wrong", "not_attempted", None


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Question]:
    return questions(tmp_path_factory.mktemp("asked"))


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ("Ａ４ 打印纸。", "a4打印纸", True),
        ("**兒童**", "儿童", True),
        ("「华为 Mate 50」", "华为mate50", True),
        ("（正确）", "正确", True),
        ("5㎡", "5m2", True),
        ("是", "否", False),
        ("不相关", "相关", False),
        ("2寸", "220", False),
    ],
)
def test_differences_of_writing_alone_are_none(a: str, b: str, equal: bool) -> None:
    assert same(a, b) is equal


def test_characters_stay_traditional_where_they_are_the_question() -> None:
    assert same("麗江", "丽江") and not same("麗江", "丽江", simplify=False)


@pytest.mark.parametrize(
    ("text", "part", "found"),
    [
        ("创立于 2015 年。", "2015年", True),
        ("创立于2015年", "5", False),
        ("iPhone 15 Pro Max", "iphone 15 pro", True),
        ("iPhone 15 Prolong", "iphone 15 pro", False),
        ("包括石棉、玻璃棉等", "玻璃棉", True),
        ("任何", "", False),
    ],
)
def test_a_part_is_found_whole(text: str, part: str, found: bool) -> None:
    assert contains(text, part) is found


def test_the_longer_of_two_names_counts() -> None:
    assert mentioned("属于急救用品（器械）。", ("急救用品", "急救用品（器械）")) == ["急救用品（器械）"]
    assert mentioned("不相关，不是相关", ("相关", "不相关")) == ["不相关", "相关"]
    assert mentioned("B", ()) == []


def test_forms_are_read_from_the_questions(asked: dict[str, Question]) -> None:
    assert {name: form_of(question).kind for name, question in asked.items()} == {
        "PC": "option",
        "RVC": "label",
        "ITC": "label",
        "RLC": "label",
        "CC": "yes_no",
        "IC": "list",
        "AC": "span",
        "SC": "query",
        "BC": "phrase",
        "IDC": "phrase",
        "pick": "pick",
        "late": "pick",
    }
    assert form_of(asked["late"]).names == ("功能", "材质&成分", "规格")
    assert form_of(asked["IC"]).names == ("野餐用品", "急救用品", "急救用品（器械）", "酒壶/酒杯")
    assert form_of(asked["pick"]).names == ("手机支架", "车用支架", "支架")
    assert query_of(asked["SC"]) == "华丽的麗江茶 X1s"


def test_options_are_read_with_either_semicolon() -> None:
    prompt = "候选品类：A.帐篷；B、炉子;C：灯 (A.B款)\nD. 椅\n答案："
    assert options_of(prompt) == {"A": "帐篷", "B": "炉子", "C": "灯 (A.B款)", "D": "椅"}


def test_a_reference_that_is_no_choice_leaves_free_text(asked: dict[str, Question]) -> None:
    odd = replace(asked["pick"], gt="别的", references=("别的",))
    assert form_of(odd).kind == "phrase"


@pytest.mark.parametrize(
    ("name", "answer", "grade"),
    [
        ("PC", "B", RIGHT),
        ("PC", "Ｂ。", RIGHT),
        ("PC", "***答案***：B", RIGHT),
        ("PC", "选项B：户外折叠椅", RIGHT),
        ("PC", "我会选择 (B)，因为A4打印纸不合适", RIGHT),
        ("PC", "户外折叠椅（轻便）", RIGHT),
        ("PC", "因为他喜欢露营，所以答案是B", RIGHT),
        ("PC", "C", WRONG),
        ("PC", "A.钓鱼竿", WRONG),
        ("PC", "A 或者 B", UNCLEAR),
        ("PC", "可以考虑 B 和 C", UNCLEAR),
        ("PC", "", SILENT),
        ("PC", "这个用户很喜欢户外活动。", SILENT),
        ("RVC", "正确", RIGHT),
        ("RVC", "答案：正确。", RIGHT),
        ("RVC", "不正确", WRONG),
        ("RVC", "该总结是正确的", RIGHT),
        ("RVC", "判断总结是否正确：错误", WRONG),
        ("RVC", "可能正确也可能错误", UNCLEAR),
        ("RVC", "先看评论，正确的做法是比较，再看错误。\n因此答案是正确", RIGHT),
        ("RVC", "很轻", SILENT),
        ("ITC", "怎么买", RIGHT),
        ("ITC", "用户的意图是“怎么挑/怎么买”", RIGHT),
        ("ITC", "买什么", WRONG),
        ("RLC", "不相关", RIGHT),
        ("RLC", "相关性：不相关", RIGHT),
        ("RLC", "无关", RIGHT),
        ("RLC", "相关", WRONG),
        ("CC", "否", RIGHT),
        ("CC", "不是，它是冷柜", RIGHT),
        ("CC", "No.", RIGHT),
        ("CC", "是", WRONG),
        ("CC", "是的，它是冰柜", WRONG),
        ("CC", "这款商品属于冰柜", WRONG),
        ("CC", "这款商品不属于冰柜", UNCLEAR),
        ("CC", "商品很好", SILENT),
        ("IC", "野餐用品，急救用品(器械)", RIGHT),
        ("IC", "急救用品（器械）、野餐用品。", RIGHT),
        ("IC", "相关类目有野餐用品和急救用品（器械）", RIGHT),
        ("IC", "野餐用品", WRONG),
        ("IC", "野餐用品,急救用品（器械）,急救用品", WRONG),
        ("IC", "野餐用品,急救用品（器械）,锅", WRONG),
        ("IC", "不知道", SILENT),
        ("AC", "儿童", RIGHT),
        ("AC", "query中属于人群的词语是：兒童", RIGHT),
        ("AC", "属于人群的词语是“儿童”。", RIGHT),
        ("AC", "兒童硅胶勺", WRONG),
        ("AC", "硅胶", WRONG),
        ("AC", "抱歉，我无法回答", SILENT),
        ("SC", "华丽的丽江茶 x1s", RIGHT),
        ("SC", "华丽的丽江茶X1S", RIGHT),
        ("SC", "纠错后的query：华丽的丽江茶 X1S", RIGHT),
        ("SC", "华丽的麗江茶 X1S", WRONG),
        ("BC", "2015年", RIGHT),
        ("BC", "该品牌创立于 2015 年。", RIGHT),
        ("BC", "12015年", WRONG),
        ("BC", "1998年", WRONG),
        ("BC", "抱歉，我不知道。", SILENT),
        ("pick", "车用支架", RIGHT),
        ("pick", "这是一款车用支架，不只是支架", UNCLEAR),
        ("pick", "支架", WRONG),
        ("late", "材质&成分", RIGHT),
        ("late", "差异在于「材质＆成分」", RIGHT),
        ("late", "功能", WRONG),
    ],
)
def test_answers_get_the_grade_that_a_person_gives(
    asked: dict[str, Question], name: str, answer: str, grade: str | None
) -> None:
    assert rule(asked[name], answer).grade == grade


@pytest.mark.parametrize(
    ("gt", "answer", "grade"),
    [
        *(("A", answer, UNCLEAR) for answer in ["A、B、C、D", "A或B", "A\nB", "A B", "A,B", "A和C都可以", "A，B也行"]),
        *(("A", answer, UNCLEAR) for answer in ["A不对，应选B", "A是错误的，选C", "除了A都可以", "不选A", "A除外"]),
        *(
            ("A", answer, UNCLEAR)
            for answer in ["A：错误", "不应该选择A", "A is wrong", "答案是A或B", "选项A合适，选项B也合适"]
        ),
        ("A", "A.钓鱼竿;B.户外折叠椅（轻便）;C.A4打印纸;D.口红", UNCLEAR),
        ("A", "A.钓鱼竿\nB.户外折叠椅（轻便）\nC.A4打印纸\nD.口红", UNCLEAR),
        ("B", "A.钓鱼竿\nB.户外折叠椅（轻便）\nC.A4打印纸\nD.口红\n因此答案是B", RIGHT),
        ("A", "A。钓鱼竿适合他，B不合适", RIGHT),
        ("B", "B，A和C都不合适", RIGHT),
        ("B", "B\n\nA：离题\nC：离题", RIGHT),
        ("B", "不是A，选B", RIGHT),
        *(("A", answer, RIGHT) for answer in ["A。比B更好", "A rather than B", "选A，不选B", "只有A合适"]),
        ("B", "如果选A，他用不上。\n所以选B", RIGHT),
        ("A", "This is a good list of words", SILENT),
        ("C", "A4打印纸", RIGHT),
    ],
)
def test_options(asked: dict[str, Question], gt: str, answer: str, grade: str | None) -> None:
    assert rule(_with(asked["PC"], gt), answer).grade == grade


@pytest.mark.parametrize(
    ("answer", "grade"),
    [
        *(
            (answer, UNCLEAR)
            for answer in ["是/否", "是，否", "是的，不是", "是错的", "Yes or no", "是\n否", "是，也不是"]
        ),
        *((answer, UNCLEAR) for answer in ["是不正确的", "是或否", "不是，是的", "yes/no", "是还是不是？"]),
        *(
            (answer, RIGHT)
            for answer in ["是的。", "是冰柜", "Yes, it is.", "属于", "是否为冰柜：是", "是，它没有冷藏室"]
        ),
        *((answer, WRONG) for answer in ["否", "不是", "No", "是否为冰柜：否", "不是冰柜，是冷柜", "是不是冰柜：不是"]),
    ],
)
def test_yes_and_no(asked: dict[str, Question], answer: str, grade: str | None) -> None:
    assert rule(_with(asked["CC"], "是"), answer).grade == grade


@pytest.mark.parametrize(
    ("name", "gt", "answer", "grade"),
    [
        *(
            ("RVC", "正确", answer, UNCLEAR)
            for answer in ["不是正确的", "不能说正确", "正确吗？", "并不完全正确", "部分正确"]
        ),
        *(("RVC", "正确", answer, UNCLEAR) for answer in ["正确/错误", "正确\n错误", "正确的说法不成立", "不一定正确"]),
        *(("RVC", "错误", answer, UNCLEAR) for answer in ["不是错误", "并非不正确", "没有错误"]),
        ("RVC", "正确", "总结与评论相符，不矛盾，正确", RIGHT),
        ("RVC", "正确", "不是正确的，前面看错了。\n答案：正确", RIGHT),
        *(
            ("RLC", "相关", answer, UNCLEAR)
            for answer in ["不太相关", "不是相关的", "没有相关", "弱相关", "相关或不相关"]
        ),
        ("RLC", "相关", "毫不相关", WRONG),
        ("RLC", "相关", "非常相关", RIGHT),
        ("RLC", "不相关", "并非不相关", UNCLEAR),
        ("RLC", "相关", "相关度：不相关", WRONG),
        ("ITC", "买什么", "不是买什么", UNCLEAR),
        ("ITC", "买什么", "除了买什么", UNCLEAR),
        ("pick", "支架", "不是支架", UNCLEAR),
        ("pick", "支架", "支架是错误的", UNCLEAR),
        ("pick", "支架", "手机支架\n支架", UNCLEAR),
        ("AC", "儿童", "属于人群的词语不是“儿童”", UNCLEAR),
        ("BC", "2015年", "不是2015年", UNCLEAR),
        ("BC", "2015年", "不是2015年，不对，就是2015年", RIGHT),
    ],
)
def test_names_that_are_turned_down_or_several(
    asked: dict[str, Question], name: str, gt: str, answer: str, grade: str | None
) -> None:
    found = rule(_with(asked[name], gt), answer)
    assert found.grade == grade
    assert grade is not None or len(found.said) != 1  # what has no grade was not read as one name


@pytest.mark.parametrize(
    ("gt", "answer", "grade", "f1"),
    [
        ("手机,电脑", "手机\n电脑", RIGHT, 1),
        ("手机,电脑", "- 手机\n- 电脑", RIGHT, 1),
        ("手机,电脑", "* 手机\n* 电脑", RIGHT, 1),
        ("手机,电脑", "1. 手机\n2. 电脑", RIGHT, 1),
        ("手机,电脑", "**1、电脑**\n\n**2、手机**", RIGHT, 1),
        ("手机,电脑", "① 手机\n② 电脑", RIGHT, 1),
        ("手机,电脑", "相关类目如下：\n• 手机：能打电话\n• 电脑：能办公", RIGHT, 1),
        ("手机,电脑", "相关类目：手机，电脑", RIGHT, 1),
        ("手机,电脑", "手机,\n电脑。", RIGHT, 1),
        ("手机,电脑", "手机,电脑\n\n说明：耳机不相关。", RIGHT, 1),
        ("手机,电脑", "手机,电脑\n- 手机：能打电话\n- 耳机：不选", RIGHT, 1),
        ("手机", "手机\n电脑", WRONG, 2 / 3),
        ("手机", "- 手机\n- 电脑", WRONG, 2 / 3),
        ("手机", "手机\n电脑\n耳机\n台灯", WRONG, 2 / 5),
        ("手机", "手机\n手套", WRONG, 2 / 3),
        ("手机", "手机\n手机", RIGHT, 1),
        ("手机", "不包括手机", UNCLEAR, None),
        ("手机", "除手机外都是", UNCLEAR, None),
    ],
)
def test_a_list_may_stand_one_entry_a_line(
    asked: dict[str, Question], gt: str, answer: str, grade: str | None, f1: float | None
) -> None:
    prompt = "***query***：数码\n***候选类目***：手机,电脑,耳机,台灯\n***答案***："
    found = rule(replace(_with(asked["IC"], gt), prompt=prompt), answer)
    assert (found.grade, found.f1) == (grade, pytest.approx(f1) if f1 else None)


def _with(question: Question, gt: str) -> Question:
    return replace(question, gt=gt, references=(gt,))


def test_any_accepted_reference_is_right(asked: dict[str, Question]) -> None:
    question = replace(asked["AC"], references=("兒童", "硅胶"))
    assert [rule(question, answer).grade for answer in ("儿童", "硅胶", "勺")] == [RIGHT, RIGHT, WRONG]


def test_a_list_has_an_f1_beside_its_grade(asked: dict[str, Question]) -> None:
    assert rule(asked["IC"], "野餐用品").f1 == pytest.approx(2 * 1 / (1 + 2))
    assert rule(asked["IC"], "野餐用品,酒壶/酒杯").f1 == pytest.approx(2 * 1 / (2 + 2))
    assert rule(asked["IC"], "野餐用品，急救用品（器械）").f1 == 1
    assert rule(asked["IC"], "").f1 is None


def test_a_reference_of_marks_alone_is_still_matched(asked: dict[str, Question]) -> None:
    question = replace(asked["AC"], references=("__",))
    assert [rule(question, answer).grade for answer in ("__", "***答案***：__", "硅胶", "")] == [
        RIGHT,
        RIGHT,
        WRONG,
        SILENT,
    ]


def test_normal_forms_written_out() -> None:
    assert normal(" 《ＩＰａｄ　Pro》， ") == "ipad pro"
    assert normal("茶 叶 罐") == "茶叶罐"
