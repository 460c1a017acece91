"""The structures `SpanningTree` (one graph) and `DependencyTrees` (the words of many sentences)."""
