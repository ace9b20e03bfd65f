"""What needs torch: training KCal's projection, and losses for training. Fitted maps are plain arrays without it."""
