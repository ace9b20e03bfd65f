"""Maps that act on one score of one class; `OneVsRest` lifts them to K classes."""
