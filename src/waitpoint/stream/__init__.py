"""What a consumer of a run holds: messages as they are said, the projections of a run, and the run itself."""
