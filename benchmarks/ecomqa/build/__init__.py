"""Building a set of questions from texts: seven stages that draft, check and drop, each drop with its reason.

1 draft, 2 criteria, 3 generality, 4 expertise, 5 factual, 6 difficulty, 7 human check (arXiv 2502.20196, section on the
construction of ChineseEcomQA).
"""
