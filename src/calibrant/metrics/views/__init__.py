"""Views: how the probabilities of K classes become scores and outcomes of one event."""
