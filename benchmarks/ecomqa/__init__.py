"""ChineseEcomQA (arXiv 2502.20196): short questions on ten e-commerce concepts, answered, graded and analysed."""
