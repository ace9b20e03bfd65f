"""What needs torch: training KCal's projection. Fitted projections are plain arrays and need it no more."""
