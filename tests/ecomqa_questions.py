"""Invented questions of every form, as the tests of ChineseEcomQA ask them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.ecomqa.data import Question, read_questions

ROWS: dict[str, dict[str, str]] = {
    "PC": {
        "system_prompt": "选出最适合的新品类。\n",
        "prompt": '***个性化偏好***： {"爱好": "露营"}\n***候选品类***：A.钓鱼竿;B.户外折叠椅（轻便）;C.A4打印纸;D.口红'
        "\n***答案***：",
        "gt": "B",
    },
    "RVC": {
        "system_prompt": "判断总结是否正确。\n",
        "prompt": "***用户评论***：杯子很轻\n***评论分析维度***：重量\n***分析维度总结***：轻便\n答案：",
        "gt": "正确",
    },
    "ITC": {
        "system_prompt": "输出用户query的意图。\n",
        "prompt": "***query***：多大的帐篷够四个人用\n答案：\n***答案***：",
        "gt": "怎么挑/怎么买",
    },
    "RLC": {
        "system_prompt": "回答相关或不相关。\n",
        "prompt": "***query***：牛皮腰带\n***商品信息***：腰带打孔器\n***答案***：",
        "gt": "不相关",
    },
    "CC": {"system_prompt": "商品品类问答\n", "prompt": "商品某牌 X1是冰柜吗？\n***答案***：", "gt": "否"},
    "IC": {
        "system_prompt": "从候选类目列表中选择。\n",
        "prompt": "***query***：户外餐具\n***候选类目***：野餐用品,急救用品,急救用品（器械）,酒壶/酒杯\n***答案***：",
        "gt": "急救用品（器械）,野餐用品",
    },
    "AC": {
        "system_prompt": "输出query中属于特定属性的词语。\n",
        "prompt": "***query***：兒童硅胶勺\n***属性***：人群\n***答案***：",
        "gt": "兒童",
    },
    "SC": {
        "system_prompt": '"输出纠错后的query。\n让我们开始吧！"\n',
        "prompt": "***query***：华丽的麗江茶 X1s\n***答案***：",
        "gt": "华丽的丽江茶 X1S",
    },
    "BC": {"system_prompt": "回答短语。\n", "prompt": "***query***：某牌的创立年份？***答案***：", "gt": "2015年"},
    "IDC": {
        "system_prompt": "回答短语。\n",
        "prompt": "***问题***什么材料能隔热？\n***答案***：",
        "gt": "石棉、玻璃棉",
    },
}
PICK = {
    "system_prompt": "属于哪个细粒度品类\n",
    "prompt": "***商品标题***：车载手机架\n候选细粒度品类：手机支架,车用支架,支架\n***答案***：",
    "gt": "车用支架",
    "task": "CC",
}
LATE = {
    "system_prompt": "",
    "prompt": '两商品在哪个维度存在差异？\n商品A [标题：杯]\n纬度列表：\n["功能","材质&成分","规格"]\n不输出其他内容:',
    "gt": "材质&成分  \n\n#隐藏逻辑链（不输出）：\n1. 功能一致",
    "task": "RLC",
}


def rows() -> list[dict[str, str]]:
    """One question of each sub-concept, then a choice among candidates and a late relevance question."""
    return [*({**row, "task": task} for task, row in ROWS.items()), PICK, LATE]


def write(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def questions(folder: Path) -> dict[str, Question]:
    """The invented questions by task; the two special ones as ``pick`` and ``late``."""
    *usual, pick, late = read_questions(write(folder / "questions.jsonl", rows()))
    return {**{question.task: question for question in usual}, "pick": pick, "late": late}
