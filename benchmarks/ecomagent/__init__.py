"""EComAgentBench: a shop with ten tools, shoppers with hidden wishes, and the grading of what an agent recommends."""
